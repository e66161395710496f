"""Blots out what looks like a secret: a record is sent to colleagues, attached to issues, shown on a screen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

HIDDEN = "[hidden]"

_SECRET_WORDS = frozenset(
    {"apikey", "auth", "credential", "credentials", "passphrase", "passwd", "password", "secret"}
    | {"token"}
)
_SECRET_PAIRS = frozenset(
    {("api", "key"), ("access", "key"), ("private", "key"), ("secret", "key")}
)
_VOCABULARY = frozenset({"bos", "cls", "eos", "image", "mask", "pad", "sep", "unk"})
"""Before ``token``: a part of a tokenizer's vocabulary, no secret."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_NAMED = re.compile(r"(?P<name>-{0,2}[A-Za-z_][\w.-]*)=(?P<value>.*)", re.DOTALL)
_KNOWN = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}|xox[abprs]-[A-Za-z0-9-]{10,}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,})"
)
"""Keys of Hugging Face, OpenAI, GitHub, GitLab, AWS, Slack, Google, and JSON web tokens."""
_IN_ADDRESS = re.compile(r"(?P<start>\b[a-z][a-z0-9+.-]*://[^\s/:@]*:)[^\s/@]+(?=@)", re.IGNORECASE)
_OF_WANDB = re.compile(r"(?P<start>WANDB_API_KEY\s*[=:]\s*)\S+")


def redacted_text(text: str) -> str:
    """``text`` without keys of the common services, passwords in addresses included."""
    text = _IN_ADDRESS.sub(lambda found: found["start"] + HIDDEN, text)
    text = _OF_WANDB.sub(lambda found: found["start"] + HIDDEN, text)
    return _KNOWN.sub(HIDDEN, text)


def redacted_command(words: Sequence[str]) -> list[str]:
    """A command line without the values of options that are named like a secret (``--hub-token X``, ``key=X``)."""
    found: list[str] = []
    hide_next = False
    for word in words:
        if hide_next and not word.startswith("-"):
            found.append(HIDDEN)
            hide_next = False
            continue
        hide_next = False
        named = _NAMED.fullmatch(word)
        if named is not None and _is_secret(named["name"]):
            found.append(f"{named['name']}={HIDDEN}")
            continue
        hide_next = word.startswith("-") and _is_secret(word)
        found.append(redacted_text(word))
    return found


def redacted(value: Any) -> Any:
    """Every text inside a JSON value, as `redacted_text` does it."""
    if isinstance(value, str):
        return redacted_text(value)
    if isinstance(value, dict):
        return {key: redacted(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [redacted(each) for each in value]
    return value


def _is_secret(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    for at, word in enumerate(words):
        before = words[at - 1] if at else ""
        if word in _SECRET_WORDS and not (word == "token" and before in _VOCABULARY):
            return True
        if (before, word) in _SECRET_PAIRS:
            return True
    return False
