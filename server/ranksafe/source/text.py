"""A file's text with its lines, and the conversion between the parser's columns and ours."""

from __future__ import annotations

import ast
import re
from itertools import accumulate

from ranksafe.source.position import Edit, Position, Range

_LINE_END = re.compile(r"\r\n|\r|\n")


def split_lines(text: str) -> list[str]:
    r"""Lines with their ends, split where the parser and editors split: at ``\n``, ``\r\n`` and ``\r`` only.

    ``str.splitlines`` also splits at form feeds and Unicode separators, which neither Python nor LSP does.
    The last item is the text after the last line end, possibly empty.
    """
    if "\r" not in text:
        lines = text.split("\n")
        return [line + "\n" for line in lines[:-1]] + [lines[-1]]
    lines = []
    start = 0
    for match in _LINE_END.finditer(text):
        lines.append(text[start : match.end()])
        start = match.end()
    lines.append(text[start:])
    return lines


def without_comment_lines(text: str) -> str:
    """The text with the lines that are comments empty: many files begin with a licence that is "distributed"."""
    kept, start, at = [], 0, text.find("#")
    while at >= 0:
        line, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        if end < 0:
            end = len(text)
        if not text[line:at].strip(" \t"):
            kept.append(text[start:line])
            start = end
        at = text.find("#", end)
    return "".join((*kept, text[start:]))


def stands_in_code(text: str, word: str) -> bool:
    """Whether a word stands in `without_comment_lines`, which takes longer to make than this to find out."""
    at = text.find(word)
    while at >= 0:
        if not text[text.rfind("\n", 0, at) + 1 : at].lstrip(" \t").startswith("#"):
            return True
        end = text.find("\n", at)
        at = -1 if end < 0 else text.find(word, end)
    return False


class SourceText:
    """Immutable text of one version of a file."""

    __slots__ = ("_starts", "lines", "text")

    def __init__(self, text: str, lines: list[str] | None = None) -> None:
        self.text = text
        self.lines = split_lines(text) if lines is None else lines
        self._starts: list[int] | None = None

    def column_of_byte(self, line: int, byte_column: int) -> int:
        """Code-point column for the parser's UTF-8 byte column; columns past the end stay at the end."""
        if line >= len(self.lines):
            return byte_column
        content = self.lines[line]
        if content.isascii():
            return byte_column
        return len(content.encode("utf-8", "surrogatepass")[:byte_column].decode("utf-8", "ignore"))

    def range_of(self, node: ast.AST, line_shift: int = 0) -> Range:
        """The range of a node parsed from this text (``line_shift``: lines moved since it was parsed)."""
        start_line = node.lineno - 1 + line_shift  # type: ignore[attr-defined]
        end_line = node.end_lineno - 1 + line_shift  # type: ignore[attr-defined]
        return Range(
            Position(start_line, self.column_of_byte(start_line, node.col_offset)),  # type: ignore[attr-defined]
            Position(end_line, self.column_of_byte(end_line, node.end_col_offset)),  # type: ignore[attr-defined]
        )

    def offset_of(self, position: Position) -> int:
        """Index into `text`; positions past a line's end are clamped to it."""
        line = min(position.line, len(self.lines) - 1)
        if self._starts is None:
            # Asked for thousands of times for one text, or never.
            self._starts = list(accumulate(map(len, self.lines), initial=0))
        return self._starts[line] + min(position.column, len(self.lines[line]))

    def slice(self, place: Range) -> str:
        """The text in a range."""
        return self.text[self.offset_of(place.start) : self.offset_of(place.end)]

    def edited(self, edits: list[Edit]) -> str:
        """The text after all edits.

        Raises ValueError when two edits overlap.
        """
        text = self.text
        limit = len(text) + 1
        for edit in sorted(edits, key=lambda item: item.range, reverse=True):
            start, end = self.offset_of(edit.range.start), self.offset_of(edit.range.end)
            if end > limit:
                raise ValueError("overlapping edits")
            text = text[:start] + edit.new_text + text[end:]
            limit = start
        return text
