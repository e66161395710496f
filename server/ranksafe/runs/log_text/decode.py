"""A log's bytes as text, piece by piece: whatever encoding, colours and carriage returns it has."""

from __future__ import annotations

import codecs
import re

_LONGEST_LINE = 1_000_000
"""Bytes kept while waiting for the end of a line; a longer line is cut there."""
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ENOUGH = 16
"""Bytes that tell UTF-16 by its zeros."""
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"BZh", b"PK\x03\x04")
"""How files of gzip, zstd, xz, bzip2 and zip begin (and PyTorch's own, which are zip files)."""
_NO_TEXT = re.compile(rb"[\x01-\x07\x0e-\x1a\x1c-\x1f\x7f]")
_LOOKED_AT = 8192
"""Bytes."""
_MOST_NO_TEXT = 0.05
"""Random bytes have 0.11; a log with a terminal's control characters has far fewer."""
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_TERMINAL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and cursor movements
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles and links
    r"|\x1b[()][A-Z0-9]|\x1b[=>78DEHMc]"
    r"|\^\[\[[0-9;]*[A-Za-z]"  # the same, made visible by `cat -v` or a web page
    r"|[\x00\x08\x1b]"
)


def is_binary(data: bytes) -> bool:
    """Whether the first bytes of a file are those of no log: packed, a program, weights.

    NUL bytes alone say nothing: UTF-16 has them, and a log whose machine went down may end in thousands.
    """
    if data.startswith(_PACKED):
        return True
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    start = data[:_LOOKED_AT].replace(b"\0", b"")
    return len(_NO_TEXT.findall(start)) > len(start) * _MOST_NO_TEXT


class Decoder:
    """Bytes in, whole lines out. UTF-8, UTF-16 (PowerShell's ``>``), GB 18030 and Latin-1 are told apart.

    Carriage returns end a line as line feeds do, so that every state of a progress bar is a line of its own.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._wide: codecs.IncrementalDecoder | None = None
        self._started = False

    def feed(self, data: bytes) -> str:
        """The lines that ``data`` completes, each with its line feed; colours and NUL bytes removed."""
        if not self._started:
            data, self._rest = self._rest + data, b""
            if len(data) < _ENOUGH:
                self._rest = data
                return ""
            data = self._begin(data)
        data = self._rest + self._narrow(data)
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if end == 0 and len(data) > _LONGEST_LINE:
            end = len(data)
        self._rest = data[end:]
        return _plain(_decoded(data[:end]))

    def finish(self) -> str:
        """What is left: a last line without its end."""
        if not self._started:
            self._rest = self._narrow(self._begin(self._rest))
        data, self._rest = self._rest + self._narrow(b"", final=True), b""
        return _plain(_decoded(data))

    def _narrow(self, data: bytes, *, final: bool = False) -> bytes:
        """UTF-16 as UTF-8, anything else as it is."""
        return data if self._wide is None else self._wide.decode(data, final).encode("utf-8")

    def _begin(self, data: bytes) -> bytes:
        """Take the byte order mark off; without one, UTF-16 shows in its zeros."""
        self._started = True
        for mark, name in _BYTE_ORDER_MARKS:
            if data.startswith(mark):
                if name != "utf-8":
                    self._wide = codecs.getincrementaldecoder(name)("replace")
                return data[len(mark) :]
        start = data[:400]
        even, odd = start[::2].count(0), start[1::2].count(0)
        if len(start) >= _ENOUGH and max(even, odd) > len(start) * 0.4 and min(even, odd) <= 2:
            name = "utf-16-le" if odd > even else "utf-16-be"
            self._wide = codecs.getincrementaldecoder(name)("replace")
        return data


def _plain(text: str) -> str:
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text or "\x00" in text or "\x08" in text or "^[[" in text:
        text = _TERMINAL.sub("", text)
    return text


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(_decoded_line(line) for line in data.splitlines(keepends=True))


def _decoded_line(line: bytes) -> str:
    # Two bytes for every Chinese character; accented letters of Latin-1 mostly stand alone.
    in_pairs = all(len(run) % 2 == 0 for run in _HIGH_RUN.findall(line))
    for encoding in ("utf-8", "gb18030") if in_pairs else ("utf-8",):
        try:
            return line.decode(encoding)
        except UnicodeDecodeError:
            continue
    return line.decode("latin-1")
