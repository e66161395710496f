"""Blots out what looks like a secret: a record is sent to colleagues, attached to issues, shown on a screen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

HIDDEN = "[hidden]"
T = TypeVar("T")

_SECRET_WORDS = frozenset(
    {"apikey", "auth", "credential", "credentials", "passphrase", "passwd", "password", "secret"}
    | {"token"}
)
_SECRET_PAIRS = frozenset(
    {("api", "key"), ("access", "key"), ("private", "key"), ("secret", "key")}
)
_VOCABULARY = frozenset({"bos", "cls", "eos", "image", "mask", "pad", "sep", "unk"})
"""Before ``token``: a part of a tokenizer's vocabulary, no secret."""
_SHORTEST = 6
_SHORTEST_OF_VARIABLES = 8
_LAST_WORDS = _SECRET_WORDS | {"key", "pass", "pat"}
_PERHAPS = frozenset({"key", "pass", "pat", "pw"})
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_NAMED = re.compile(r"(?P<name>[-+~]{0,2}[A-Za-z_][\w.-]*)=(?P<value>.*)", re.DOTALL)
"""Also as Hydra's overrides begin: ``+model.api_key=...``, ``++key=...``."""
_RANDOM = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])[\w+/=.-]{16,}")
"""Only keys are so long, without spaces and with digits between letters; what is only named ``key`` may be a column."""
_RANDOM_WORD = re.compile(r"(?=[A-Za-z+]*\d)(?=\d*[A-Za-z])[A-Za-z0-9+]{20,}=*")
"""The same behind an option that says nothing, such as ``-k``: neither a path nor what people name their runs."""
_KNOWN = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}|xox[abprs]-[A-Za-z0-9-]{10,}|AIza[\w-]{30,})"
)
"""Keys of Hugging Face, OpenAI, GitHub, GitLab, AWS, Slack, Google."""
_WEB_TOKEN = re.compile(r"\beyJ[\w-]{10,}(?P<rest>\.[\w-]{10,}\.[\w-]{5,})?")
"""JSON web tokens; what only begins like one is passed over at once, else it would be tried from each of its places."""
_IN_ADDRESS = re.compile(
    r"(?P<start>\b[a-z][a-z0-9+.-]{0,30}://[^\s/:@]*:)[^\s/@]+(?=@)", re.IGNORECASE
)
_TOKEN_IN_ADDRESS = re.compile(
    r"(?P<start>\b[a-z][a-z0-9+.-]{0,30}://)[^\s/:@]{20,}(?=@)", re.IGNORECASE
)
_OF_WANDB = re.compile(r"(?P<start>WANDB_API_KEY\s*[=:]\s*)\S+")
_IN_HEADER = re.compile(
    r"(?P<start>\b(?:bearer|basic)\s+)(?=[^\s\"']*\d)[\w.~+/=-]{12,}", re.IGNORECASE
)
_QUOTED = re.compile(
    r"(?P<start>(?P<name>\b[A-Za-z_][\w.-]{1,60})[\"']?\]?\s{0,3}[=:]\s{0,3}(?P<quote>[\"']))"
    r"[^\"'\s]{8,}(?=(?P=quote))"
)
"""``token="..."`` in code, ``"api_key": "..."`` in JSON."""
_VARIABLE = re.compile(r"(?P<start>\b(?P<name>[A-Z][A-Z0-9_]{2,60})=)[^\s\"'&]{6,}")
_IN_QUERY = re.compile(r"(?P<start>[?&](?P<name>[\w.-]{1,60})=)[^&\s\"'#]{6,}")
_OPTION = re.compile(
    r"(?P<start>(?P<name>--?[A-Za-z][\w.-]{1,60})(?:=|[\"'],\s?[\"']|\s(?=\S*\d)))[^\s\"',-][^\s\"',]{5,}"
)
"""Of a command line that is quoted in a message: as words, and as Python shows a list of them."""
_OF_LOGIN = re.compile(r"(?P<start>\bwandb\.login\([^)\n]*?[\"'])[0-9a-f]{40}(?=[\"'])")
_PASSWORD = re.compile(r"pass|secret|credential", re.IGNORECASE)
_NAMED_SECRETS = (_QUOTED, _VARIABLE, _IN_QUERY, _OPTION)
_SIGNED = frozenset({"sig", "signature", "x-amz-signature", "x-goog-signature"})


def redacted_text(text: str) -> str:
    """``text`` without keys of the common services, passwords in addresses, and values that stand behind a name like
    ``api_key`` in code, JSON, environment variables, options and queries of addresses."""
    text = _IN_ADDRESS.sub(lambda found: found["start"] + HIDDEN, text)
    for pattern in (_TOKEN_IN_ADDRESS, _OF_WANDB, _OF_LOGIN, _IN_HEADER):
        text = pattern.sub(lambda found: found["start"] + HIDDEN, text)
    for pattern in _NAMED_SECRETS:
        text = pattern.sub(_without_value, text)
    text = _WEB_TOKEN.sub(lambda found: HIDDEN if found["rest"] else found[0], text)
    return _KNOWN.sub(HIDDEN, text)


def secret_values(words: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values that `redacted_command` hides, and those of variables named like a secret (``*_TOKEN``), the longest
    first; those too short to be told from other text are left out."""
    found = {value for name, value in environment.items() if _is_secret_variable(name, value)}
    for word, shown in zip(words, redacted_command(words), strict=True):
        if shown == HIDDEN:
            found.add(word)
        elif shown.endswith(f"={HIDDEN}"):
            found.add(word[len(shown) - len(HIDDEN) :])
    return tuple(sorted((each for each in found if len(each) >= _SHORTEST), key=len, reverse=True))


def redacted_command(words: Sequence[str]) -> list[str]:
    """A command line without the values of options that are named like a secret (``--hub-token X``, ``key=X``)."""
    found: list[str] = []
    hide_next = False
    for at, word in enumerate(words):
        if hide_next and not word.startswith("-"):
            found.append(HIDDEN)
            hide_next = False
            continue
        hide_next = False
        named = _NAMED.fullmatch(word)
        if named is not None and _is_named_secret(named["name"], named["value"]):
            found.append(f"{named['name']}={HIDDEN}")
            continue
        if named is not None and "=" in named["value"]:
            found.append(f"{named['name']}={redacted_command([named['value']])[0]}")
            continue
        following = words[at + 1] if at + 1 < len(words) else ""
        hide_next = word.startswith("-") and _is_named_secret(word, following)
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


def without(value: T, hidden: Sequence[str]) -> T:
    """A value of plain data without these texts, wherever in it they stand."""
    return cast(T, _without(value, hidden)) if hidden else value


def _without(value: Any, hidden: Sequence[str]) -> Any:
    if type(value) is str:  # no member of an enumeration
        for each in hidden:
            value = value.replace(each, HIDDEN)
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(_without(each, hidden) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    own = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
    changed = {name: _without(each, hidden) for name, each in own.items()}
    return value if changed == own else replace(value, **changed)


def _is_secret_variable(name: str, value: str) -> bool:
    last = name.rpartition("_")[2].lower()
    telling = any(each.isdigit() for each in value) or _PASSWORD.search(name) is not None
    return telling and len(value) >= _SHORTEST_OF_VARIABLES and last in _LAST_WORDS


def _is_named_secret(name: str, value: str) -> bool:
    """Whether a name, or a last word ``key`` or an option of one letter together with the value, tells a secret."""
    if _is_secret(name):
        return True
    last = [word.lower() for word in _WORD.findall(name)][-1:]
    if re.fullmatch(r"-[A-Za-z]", name):
        return _RANDOM_WORD.fullmatch(value) is not None
    return _PERHAPS.issuperset(last) and _RANDOM.fullmatch(value) is not None


def _without_value(found: re.Match[str]) -> str:
    name, value = found["name"], found[0].removeprefix(found["start"])
    # Names of tokens are also those of a text's parts; keys have digits.
    looks_so = any(each.isdigit() for each in value) or _PASSWORD.search(name) is not None
    hide = looks_so and (name.lower() in _SIGNED or _is_secret(name))
    return found["start"] + HIDDEN if hide else found[0]


def _is_secret(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    for at, word in enumerate(words):
        before = words[at - 1] if at else ""
        if word in _SECRET_WORDS and not (word == "token" and before in _VOCABULARY):
            return True
        if (before, word) in _SECRET_PAIRS:
            return True
    return False
