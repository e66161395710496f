"""Read source files as Python does, and say clearly what cannot be read."""

from __future__ import annotations

import io
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ranksafe.localization import Translated
from ranksafe.source.notebook import CellStart, NotANotebook, code_cells, is_notebook, joined

SIZE_LIMIT: Final = 8 * 1024 * 1024
"""Bytes; files above it are data that happen to end in .py."""
NOTEBOOK_LIMIT: Final = 8 * SIZE_LIMIT
"""Bytes; most of a large notebook are the pictures that its cells have drawn."""

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

    def write(self, text: str) -> None:
        """Replace the file's content, in its own encoding. Raises OSError and UnicodeEncodeError.

        The file stays the one it is (its owner, mode and links). Where the disk has no room for the new content, the
        old one is still there: it is not cut off before the new one has been written over it. Notebooks cannot be
        written.
        """
        assert self.cells is None
        data = text.encode(self.encoding)
        with self.path.open("r+b", buffering=0) as file:
            before = file.read()
            try:
                _write_all(file, _UTF8_BOM + data if self.has_bom else data)
            except OSError:
                _write_all(file, before)
                raise


def read_source(path: Path) -> SourceFile:
    """The text of a Python file, decoded as PEP 263 says, or of a notebook's cells; line ends are kept as they are.

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
        limit = NOTEBOOK_LIMIT if is_notebook(path) else SIZE_LIMIT
        if path.stat().st_size > limit:
            raise UnreadableSource(_TOO_LARGE.filled(limit=limit // (1024 * 1024)))
        return path.read_bytes()
    except OSError as error:
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
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        message = _UNDECODABLE.filled(offset=error.start, encoding=encoding)
        raise UnreadableSource(message) from error
    return SourceFile(path, text, encoding, has_bom)


def _decode_notebook(path: Path, data: bytes) -> SourceFile:
    try:
        starts, lines = joined(code_cells(data))
    except NotANotebook as error:
        raise UnreadableSource(_NO_NOTEBOOK.filled(reason=error)) from error
    return SourceFile(path, "".join(lines), "utf-8", cells=tuple(starts))


def _reason(error: SyntaxError | UnicodeDecodeError) -> str:
    return str(error.msg) if isinstance(error, SyntaxError) else error.reason
