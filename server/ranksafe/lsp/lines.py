"""The lines of an open document, kept up to date edit by edit, and the columns the client counts.

pygls 2.1.1 splits a document anew at every access of ``TextDocument.lines``, and at more characters than LSP does
(3.17, "Text Documents"); so the server keeps this list instead of pygls' documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ranksafe.source.position import Position, Range
from ranksafe.source.text import split_lines


def without_end(line: str) -> str:
    """``line`` without its line break."""
    return line.rstrip("\r\n")


class PositionEncoding(Enum):
    """What the client counts columns in. Between the borders everything counts code points."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"

    def units(self, text: str) -> int:
        """The length of ``text`` in the client's units."""
        if self is PositionEncoding.UTF32 or text.isascii():
            return len(text)
        return sum(map(self._width, text))

    def code_points(self, line: str, units: int) -> int:
        """The column, in code points, that lies ``units`` into ``line``; beyond its end: its length, inside a
        character: that character's start."""
        content = without_end(line)
        if self is PositionEncoding.UTF32 or content.isascii():
            return min(units, len(content))
        passed = 0
        for column, character in enumerate(content):
            passed += self._width(character)
            if passed > units:
                return column
        return len(content)

    def _width(self, character: str) -> int:
        point = ord(character)
        if self is PositionEncoding.UTF16:
            return 2 if point > 0xFFFF else 1
        if self is PositionEncoding.UTF8:
            return 1 + (point > 0x7F) + (point > 0x7FF) + (point > 0xFFFF)
        return 1


@dataclass(frozen=True, slots=True)
class TouchedLines:
    """What edits replaced: the old lines ``first`` to ``last`` (inclusive) by the new lines ``first`` to ``new_last``;
    ``new_last`` is ``first - 1`` where nothing took their place."""

    first: int
    last: int
    new_last: int

    @property
    def shift(self) -> int:
        """By how many lines the text below moved down."""
        return self.new_last - self.last

    def then(self, later: TouchedLines) -> TouchedLines:
        """Both edits as one; ``later`` counts lines as they are after this one."""
        reach = max(self.new_last, later.last)
        return TouchedLines(
            first=min(self.first, later.first),
            last=reach - self.shift,
            new_last=reach + later.shift,
        )


class LineBuffer:
    """The text of one document as lines."""

    def __init__(self, text: str) -> None:
        self.lines = split_lines(text)

    @property
    def text(self) -> str:
        """The whole document."""
        return "".join(self.lines)

    def line(self, number: int) -> str:
        """Line ``number`` with its end; empty beyond the document."""
        return self.lines[number] if 0 <= number < len(self.lines) else ""

    def replace(self, place: Range, new_text: str) -> TouchedLines:
        """Put ``new_text`` in a place."""
        first, last = self._clamped(place.start), self._clamped(place.end)
        head = self.lines[first.line][: first.column]
        tail = self.lines[last.line][last.column :]
        start = first.line
        # A deletion may join a lone \r above with a \n below into one line break.
        if start > 0 and self.lines[start - 1].endswith("\r"):
            start -= 1
            head = self.lines[start] + head
        joined = split_lines(head + new_text + tail)
        if last.line + 1 < len(self.lines) and joined[-1] == "":
            joined.pop()
        self.lines[start : last.line + 1] = joined
        return TouchedLines(start, last.line, start + len(joined) - 1)

    def replace_all(self, text: str) -> TouchedLines:
        """Take over a whole new text; only the lines that differ count as touched."""
        old, new = self.lines, split_lines(text)
        self.lines = new
        same_head = _common_prefix(old, new)
        same_tail = _common_prefix(old[same_head:][::-1], new[same_head:][::-1])
        first = min(same_head, len(old) - 1, len(new) - 1)
        last = max(first, len(old) - same_tail - 1)
        return TouchedLines(first, last, last + len(new) - len(old))

    def _clamped(self, position: Position) -> Position:
        if position.line >= len(self.lines):
            return Position(len(self.lines) - 1, len(self.lines[-1]))
        return position


def _common_prefix(left: Sequence[str], right: Sequence[str]) -> int:
    count = 0
    for one, other in zip(left, right):  # noqa: B905 - the shorter one ends the prefix
        if one != other:
            break
        count += 1
    return count
