"""Read source files as Python does, and say clearly what cannot be read."""

from __future__ import annotations

import io
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ranksafe.localization import Translated

SIZE_LIMIT: Final = 8 * 1024 * 1024
"""Bytes; files above it are data that happen to end in .py."""

_UTF8_BOM = b"\xef\xbb\xbf"

_TOO_LARGE = Translated("not checked: larger than {limit} MiB", "未检查：文件大于 {limit} MiB")
_NO_FILE = Translated("not checked: it is not a regular file", "未检查：不是普通文件")
BINARY = Translated("not checked: it is not a text file", "未检查：不是文本文件")
_UNREADABLE = Translated("cannot be read: {reason}", "无法读取：{reason}")
_UNWRITABLE = Translated(
    "{path}: cannot be written and is as it was: {reason}", "{path}：无法写入，内容未变：{reason}"
)
_UNKNOWN_ENCODING = Translated(
    "not checked: its encoding declaration is not usable ({reason})",
    "未检查：编码声明不可用（{reason}）",
)
_UNDECODABLE = Translated(
    "not checked: byte {offset} is not valid {encoding}",
    "未检查：第 {offset} 个字节不是有效的 {encoding}",
)


class UnreadableSource(Exception):
    """A file that cannot be checked; the message says why."""

    def __init__(self, message: Translated) -> None:
        super().__init__(message.en)
        self.message = message


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file's text and how to write it back."""

    path: Path
    text: str
    encoding: str
    has_bom: bool = False

    def write(self, text: str) -> None:
        """Replace the file's content, in its own encoding. Raises OSError and UnicodeEncodeError.

        The file stays the one it is (its owner, mode and links). Where the disk has no room for the new content, the
        old one is still there: it is not cut off before the new one has been written over it.
        """
        data = text.encode(self.encoding)
        with self.path.open("r+b", buffering=0) as file:
            before = file.read()
            try:
                _write_all(file, _UTF8_BOM + data if self.has_bom else data)
            except OSError:
                _write_all(file, before)
                raise


def read_source(path: Path) -> SourceFile:
    """The text of a Python file, decoded as PEP 263 says; line ends are kept as they are.

    Raises UnreadableSource.
    """
    return decode_source(path, read_bytes(path))


def not_written(path: Path, error: OSError | UnicodeEncodeError) -> Translated:
    """Why `SourceFile.write` failed."""
    reason = error.strerror or error if isinstance(error, OSError) else error
    return _UNWRITABLE.filled(path=path, reason=reason)


def _write_all(file: io.FileIO, data: bytes) -> None:
    file.seek(0)
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
    file.truncate()


def read_bytes(path: Path) -> bytes:
    """The content of a file of reasonable size. Raises UnreadableSource."""
    try:
        if not path.is_file():
            raise UnreadableSource(_NO_FILE)
        if path.stat().st_size > SIZE_LIMIT:
            raise UnreadableSource(_TOO_LARGE.filled(limit=SIZE_LIMIT // (1024 * 1024)))
        return path.read_bytes()
    except OSError as error:
        raise UnreadableSource(_UNREADABLE.filled(reason=error.strerror or error)) from error


def decode_source(path: Path, data: bytes) -> SourceFile:
    """The text in ``data``, the content of ``path``. Raises UnreadableSource."""
    if b"\0" in data:
        raise UnreadableSource(BINARY)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except (SyntaxError, UnicodeDecodeError) as error:
        raise UnreadableSource(_UNKNOWN_ENCODING.filled(reason=_reason(error))) from error
    has_bom = data.startswith(_UTF8_BOM)
    encoding = "utf-8" if encoding == "utf-8-sig" else encoding
    content = data[len(_UTF8_BOM) :] if has_bom else data
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        message = _UNDECODABLE.filled(offset=error.start, encoding=encoding)
        raise UnreadableSource(message) from error
    return SourceFile(path, text, encoding, has_bom)


def _reason(error: SyntaxError | UnicodeDecodeError) -> str:
    return str(error.msg) if isinstance(error, SyntaxError) else error.reason
