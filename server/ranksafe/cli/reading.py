"""Read source files as Python does, and say clearly what cannot be read."""

from __future__ import annotations

import errno
import io
import tokenize
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ranksafe.cli.replacing import ChangedMeanwhile, replace_content
from ranksafe.localization import Translated
from ranksafe.source.notebook import CellStart, NotANotebook, code_cells, is_notebook, joined
from ranksafe.source.plain_files import read_plain

SIZE_LIMIT: Final = 8 * 1024 * 1024
"""Bytes; files above it are data that happen to end in .py."""
NOTEBOOK_LIMIT: Final = 8 * SIZE_LIMIT
"""Bytes; most of a large notebook are the pictures that its cells have drawn."""

_ASCII = bytes([*b"\t\n\r", *range(0x20, 0x7F)])
_UTF8_BOM = b"\xef\xbb\xbf"

_TOO_LARGE = Translated("not checked: larger than {limit} MiB", "未检查：文件大于 {limit} MiB")
_NO_FILE = Translated("not checked: it is not a regular file", "未检查：不是普通文件")
BINARY = Translated("not checked: it is not a text file", "未检查：不是文本文件")
_NO_NOTEBOOK = Translated(
    "not checked: it is no notebook with cells in Python ({reason})",
    "未检查：不是含有 Python 单元格的笔记本（{reason}）",
)
NOT_WRITTEN = Translated(
    "notebooks are not written: an editor that has it open can apply the fixes",
    "不会写入笔记本：请在编辑器中打开它并应用修复",
)
_UNREADABLE = Translated("cannot be read: {reason}", "无法读取：{reason}")
_UNWRITABLE = Translated(
    "{path}: cannot be written and is as it was: {reason}", "{path}：无法写入，内容未变：{reason}"
)
_CHANGED = Translated(
    "{path}: was changed by somebody else meanwhile and is left as it is now",
    "{path}：期间被其他程序修改，保持其现状",
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
    cells: tuple[CellStart[int], ...] | None = None
    """Of a notebook, whose ``text`` is the Python of its cells; None for other files."""
    data: bytes = field(default=b"", repr=False)
    """The content that was read."""

    def write(self, text: str) -> None:
        """Replace the file's content, in its own encoding. Raises what `replace_content` does, and UnicodeEncodeError.

        Notebooks cannot be written.
        """
        assert self.cells is None
        data = text.encode(self.encoding)
        replace_content(self.path, self.data, _UTF8_BOM + data if self.has_bom else data)


def read_source(path: Path) -> SourceFile:
    """The text of a Python file, decoded as PEP 263 says, or of a notebook's cells; line ends are kept as they are.

    Raises UnreadableSource.
    """
    return decode_source(path, read_bytes(path))


def not_written(path: Path, error: OSError | UnicodeEncodeError) -> Translated:
    """Why `SourceFile.write` failed."""
    if isinstance(error, ChangedMeanwhile):
        return _CHANGED.filled(path=path)
    reason = error.strerror or error if isinstance(error, OSError) else error
    return _UNWRITABLE.filled(path=path, reason=reason)


def read_bytes(path: Path) -> bytes:
    """The content of a file of reasonable size. Raises UnreadableSource."""
    try:
        if not path.is_file():
            raise UnreadableSource(_NO_FILE)
        limit = NOTEBOOK_LIMIT if is_notebook(path) else SIZE_LIMIT
        return read_plain(path, limit)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise UnreadableSource(_TOO_LARGE.filled(limit=limit // (1024 * 1024))) from error
        raise UnreadableSource(_UNREADABLE.filled(reason=error.strerror or error)) from error


def decode_source(path: Path, data: bytes) -> SourceFile:
    """The text in ``data``, the content of ``path``. Raises UnreadableSource."""
    if is_notebook(path):
        return _decode_notebook(path, data)
    if b"\0" in data:
        raise UnreadableSource(BINARY)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except (SyntaxError, UnicodeDecodeError) as error:
        raise UnreadableSource(_UNKNOWN_ENCODING.filled(reason=_reason(error))) from error
    has_bom = data.startswith(_UTF8_BOM)
    encoding = "utf-8" if encoding == "utf-8-sig" else encoding
    content = data[len(_UTF8_BOM) :] if has_bom else data
    if not _reads_ascii(encoding):
        raise UnreadableSource(_UNKNOWN_ENCODING.filled(reason=encoding))
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        message = _UNDECODABLE.filled(offset=error.start, encoding=encoding)
        raise UnreadableSource(message) from error
    return SourceFile(path, text, encoding, has_bom, data=data)


def _reads_ascii(encoding: str) -> bool:
    """Whether ASCII is itself in an encoding, as in all that programs are written in; not so in ``rot13`` or
    ``zlib``, which are no encodings of text, nor in ``punycode`` or ``idna``, which take quadratic time."""
    try:
        return _ASCII.decode(encoding).encode(encoding) == _ASCII
    except (UnicodeError, LookupError, ValueError):
        return False


def _decode_notebook(path: Path, data: bytes) -> SourceFile:
    try:
        starts, lines = joined(code_cells(data))
    except NotANotebook as error:
        raise UnreadableSource(_NO_NOTEBOOK.filled(reason=error)) from error
    return SourceFile(path, "".join(lines), "utf-8", cells=tuple(starts))


def _reason(error: SyntaxError | UnicodeDecodeError) -> str:
    return str(error.msg) if isinstance(error, SyntaxError) else error.reason
