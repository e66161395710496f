"""Offsets, lines and the bits between nodes (commas, comments, brackets) that the tree does not hold."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from itertools import accumulate

from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit, Position, Range
from ranksafe.source.text import SourceText

_TRIVIA = re.compile(r"(?:[ \t\f\r\n]|\\\r?\n|#[^\r\n]*)*")
_INDENTATION = re.compile(r"[ \t\f]*")


class Places:
    """One text with its offsets: made for one fix, then forgotten."""

    def __init__(self, source: SourceText) -> None:
        self.text = source.text
        self.lines = source.lines
        self._starts = list(accumulate(map(len, source.lines), initial=0))

    def offset(self, position: Position) -> int:
        """Index into the text."""
        line = min(position.line, len(self.lines) - 1)
        return self._starts[line] + min(position.column, len(self.lines[line]))

    def position(self, offset: int) -> Position:
        """Line and column of an index into the text."""
        line = min(bisect_right(self._starts, offset), len(self.lines)) - 1
        return Position(line, offset - self._starts[line])

    def span(self, module: Module, node: ast.AST) -> tuple[int, int]:
        """Start and end of a whole node, a definition's body included, as indexes into the text."""
        moved = module.range_of(node).start.line - (node.lineno - 1)  # type: ignore[attr-defined]
        place = module.source.range_of(node, moved)
        return self.offset(place.start), self.offset(place.end)

    def edit(self, start: int, end: int, new_text: str) -> Edit:
        """Replace the text from ``start`` to ``end``."""
        return Edit(Range(self.position(start), self.position(end)), new_text)

    def offset_of_line(self, line: int) -> int:
        """Where a line (0-based) starts."""
        return self._starts[min(line, len(self.lines))]

    def line_start(self, offset: int) -> int:
        """Where the line of ``offset`` starts."""
        return self._starts[self.position(offset).line]

    def next_line(self, offset: int) -> int:
        """Where the line after that of ``offset`` starts, or the end of the text."""
        return self._starts[self.position(offset).line + 1]

    def after_trivia(self, offset: int) -> int:
        """The first index from ``offset`` on that is not blank, line end, continuation or comment."""
        match = _TRIVIA.match(self.text, offset)
        return match.end() if match else offset

    def starts_its_line(self, offset: int) -> bool:
        """Whether only blanks stand before ``offset`` on its line."""
        return not self.text[self.line_start(offset) : offset].strip()

    def ends_its_line(self, offset: int) -> bool:
        """Whether only blanks or a comment stand after ``offset`` on its line."""
        rest = self.text[offset : self.next_line(offset)].strip()
        return not rest or rest.startswith("#")

    def indentation(self, offset: int) -> str:
        """The blanks at the start of the line of ``offset``."""
        match = _INDENTATION.match(self.text, self.line_start(offset))
        return match[0] if match else ""

    @property
    def newline(self) -> str:
        r"""The file's line end: ``\r\n`` if its first line ends so, else ``\n``."""
        return "\r\n" if self.lines[0].endswith("\r\n") else "\n"

    def with_parentheses(self, start: int, end: int) -> tuple[int, int]:
        """The span of an expression together with the redundant parentheses right around it."""
        while True:
            close = self.after_trivia(end)
            before = self.text[:start].rstrip()
            if close >= len(self.text) or self.text[close] != ")" or not before.endswith("("):
                return start, end
            if self._opens_a_call(len(before) - 1):
                return start, end
            start, end = len(before) - 1, close + 1

    def _opens_a_call(self, parenthesis: int) -> bool:
        before = self.text[:parenthesis].rstrip(" \t")
        word = _ENDS_A_CALLEE.match(before[::-1])
        return word is not None and word[0][::-1] not in _OPERATOR_WORDS


_ENDS_A_CALLEE = re.compile(r"[\w)\]\"'}]+")
"""Read from its end to its beginning."""
_OPERATOR_WORDS = frozenset(
    {"and", "or", "not", "in", "is", "if", "else", "for", "return", "yield", "lambda", "await"}
    | {"assert", "del", "from", "raise", "while", "with", "elif", "case", "match"}
)


def places_of(module: Module) -> Places:
    """The places of a module's present text."""
    return Places(module.source)
