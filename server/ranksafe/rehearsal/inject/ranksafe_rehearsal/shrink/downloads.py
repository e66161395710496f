"""Texts that a script downloads by their address, and tiktoken's vocabularies.

Of a text nothing is asked but characters; a vocabulary has its real size, because the script's model is built for it.
Everything else that is downloaded stays refused.
"""

from __future__ import annotations

import functools
import io
import itertools
from email.message import Message
from typing import Any
from urllib.parse import urlsplit

from .. import importing, journal
from . import text

_CHARACTERS = 1_100_000
_SUFFIXES = (".txt", ".text")
_VOCABULARIES = {
    "vocab.bpe": (50_256, -1),
    "r50k_base.tiktoken": (50_256, -1),
    "p50k_base.tiktoken": (50_280, 50_256),
    "cl100k_base.tiktoken": (100_256, -1),
    "o200k_base.tiktoken": (199_998, -1),
}
"""Mergeable tokens, and a number among theirs that is a special token's (tiktoken 0.14, ``openai_public.py``)."""


def install() -> None:
    """Hook what downloads, as the script imports it."""
    importing.after_import("urllib.request", _hook_urllib)
    importing.after_import("requests.sessions", _hook_requests)
    importing.after_import("tiktoken.load", _hook_tiktoken)


def _hook_urllib(module: Any) -> None:
    original = module.urlopen

    @functools.wraps(original)
    def urlopen(url: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            return original(url, *arguments, **keywords)
        except OSError:
            address = url if isinstance(url, str) else url.full_url
            if not _is_text(address):
                raise
        content = _text_for(address)
        headers = Message()
        headers["Content-Type"] = "text/plain; charset=utf-8"
        headers["Content-Length"] = str(len(content))
        return module.addinfourl(io.BytesIO(content), headers, address, 200)

    module.urlopen = urlopen


def _hook_requests(module: Any) -> None:
    original = module.Session.request

    @functools.wraps(original)
    def request(self: Any, method: Any, url: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            return original(self, method, url, *arguments, **keywords)
        except OSError:
            if str(method).upper() != "GET" or not _is_text(str(url)):
                raise
        content = _text_for(str(url))
        response = module.Response()
        response.status_code, response.url, response.encoding = 200, str(url), "utf-8"
        response.headers["Content-Length"] = str(len(content))
        response.raw = io.BytesIO(content)
        return response

    module.Session.request = request


def _is_text(address: str) -> bool:
    return urlsplit(address).path.lower().endswith(_SUFFIXES)


def _text_for(address: str) -> bytes:
    journal.modified(
        f"text {address} → {_CHARACTERS} synthetic characters",
        f"文本 {address} → {_CHARACTERS} 个合成字符",
        object="dataset",
        name=address,
    )
    source = text.generator(address)
    parts: list[str] = []
    length = 0
    while length < _CHARACTERS:
        parts.append(text.paragraph(source))
        length += len(parts[-1]) + 1
    return ("\n".join(parts)[: _CHARACTERS - 1] + "\n").encode()


def _hook_tiktoken(module: Any) -> None:
    for name in ("load_tiktoken_bpe", "data_gym_to_mergeable_bpe_ranks"):
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, functools.partial(_vocabulary, original))


def _vocabulary(original: Any, *arguments: Any, **keywords: Any) -> Any:
    file = str(next(iter((*arguments, *keywords.values())), ""))
    try:
        return original(*arguments, **keywords)
    except Exception:
        known = _VOCABULARIES.get(file.rsplit("/", 1)[-1])
        if known is None:
            raise
    journal.modified(
        f"vocabulary {file} → one of the same size",
        f"词表 {file} → 同样大小的词表",
        object="tokenizer",
        name=file,
    )
    return _tokens(*known)


def _tokens(count: int, left_out: int) -> dict[bytes, int]:
    """The 256 bytes, then pairs and fours of them, those of letters first."""
    order = sorted(range(256), key=lambda byte: (not chr(byte).isalpha() or byte > 127, byte))
    single = [bytes([byte]) for byte in order]
    pairs = [one + other for one, other in itertools.product(single, repeat=2)]
    fours = (one + other for one, other in itertools.product(pairs[:700], repeat=2))
    tokens = itertools.chain((bytes([byte]) for byte in range(256)), pairs, fours)
    numbers = (number for number in itertools.count() if number != left_out)
    return dict(zip(itertools.islice(tokens, count), numbers))
