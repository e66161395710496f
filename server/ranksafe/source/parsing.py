"""Python's own parser, one call at a time; long texts in pieces, between which other work may come.

A text that parses alone leaves nothing open behind it: where it ends, the parser of the whole text stands as it stands
between two statements. So a text may be cut in front of any line on which a statement may begin; where a piece does not
parse, the cut was none (it lay in a string, in brackets, before the rest of a statement), and the piece is lengthened.
"""

from __future__ import annotations

import ast
import re
import threading
import warnings
from collections.abc import Sequence
from typing import Final

from ranksafe.pausing import pause_point
from ranksafe.source.text import split_lines

LONGEST_STATEMENT: Final = 150_000
"""Characters: one statement is parsed in one go, and these take 0.2 seconds, in which nobody else is served. In the
6,000 files of more than 40,000 characters of an environment with torch, four, made by programs, had longer ones."""
_ONE_AT_A_TIME = threading.Lock()
_PIECE: Final = 20_000
"""Characters of a piece: some milliseconds."""
_BEGINNING: Final = re.compile(r"(?!(?:else|elif|except|finally|case)\b)[A-Za-z_@]")
_BETWEEN_STATEMENTS: Final = re.compile(r"(?<![,(\[{\\\r])(?:\r\n?|\n)(?=[ \t]*[A-Za-z_@#])")
"""The end of a line behind which a statement or a comment may begin."""
_DEEPEST: Final = 3
"""Blocks in each other that are parsed in pieces: those of a class, a method, a statement in it."""
_WITH_ONE_BLOCK: Final = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.With,
    ast.AsyncWith,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.If,
)


def parse_python(text: str) -> ast.Module:
    """`ast.parse`, safe to call from several threads.

    CPython 3.11 counts the depth of the tree it builds in a place that all threads share: when the garbage collector
    lets another thread parse meanwhile, it raises "SystemError: AST constructor recursion depth mismatch".

    Raises SyntaxError, ValueError, RecursionError and MemoryError as `ast.parse` does.
    """
    # A form feed lets the indentation of its line begin anew, so that it is not what it looks like.
    if len(text) < 2 * _PIECE or "\0" in text or "\f" in text:
        return _parse(text)
    lines = split_lines(text)
    return ast.Module(_Pieces(lines).statements(0, len(lines), ""), [])


def has_too_long_statement(text: str) -> bool:
    """Whether there is one of more than `LONGEST_STATEMENT` characters.

    Told by how lines end and begin, so that a bracket that is not closed yet joins few lines. Lines of words in a
    string count as statements, and a statement whose lines look like several is not seen.
    """
    start = 0
    while len(text) - start > LONGEST_STATEMENT:
        begins = _last_beginning(text, start + 1, start + LONGEST_STATEMENT + 1)
        if begins is None:
            return True
        start = begins
    return False


def _last_beginning(text: str, start: int, stop: int) -> int | None:
    """The last end of a line in a part of the text behind which a statement may begin; few lines are looked at."""
    ends = {mark: text.rfind(mark, start, stop) for mark in "\n\r"}
    while (end := max(ends.values())) >= 0:
        if _BETWEEN_STATEMENTS.match(text, end):
            return end
        ends[text[end]] = text.rfind(text[end], start, end)
    return None


def _parse(text: str) -> ast.Module:
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        # Invalid escapes in the user's strings are none of our business.
        warnings.simplefilter("ignore")
        return ast.parse(text)


class _Pieces:
    """The lines of a text, parsed a piece after the other."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines

    def statements(self, start: int, stop: int, indent: str, depth: int = 0) -> list[ast.stmt]:
        """The statements in the lines from ``start`` up to ``stop``, all of them indented so."""
        cuts = [*self._cuts(start, stop, indent), stop]
        found: list[ast.stmt] = []
        taken = 1
        while len(cuts) > 1:
            pause_point()
            try:
                new = self._with_long_block(cuts[0], cuts[1], indent, depth) if taken == 1 else None
                found += self._piece(cuts[0], cuts[taken], indent) if new is None else new
            except SyntaxError:
                if taken == len(cuts) - 1:
                    raise
                taken = min(2 * taken, len(cuts) - 1)
            else:
                cuts, taken = cuts[taken:], 1
        return found

    def _cuts(self, start: int, stop: int, indent: str) -> list[int]:
        """``start``, and lines on which a statement may begin, a piece apart."""
        cuts, size = [start], 0
        for number in range(start, stop):
            if size >= _PIECE and self._may_begin(number, indent):
                cuts.append(number)
                size = 0
            size += len(self._lines[number])
        return cuts

    def _may_begin(self, number: int, indent: str) -> bool:
        line = self._lines[number]
        return line.startswith(indent) and _BEGINNING.match(line, len(indent)) is not None

    def _piece(self, start: int, stop: int, indent: str) -> list[ast.stmt]:
        text = "".join(self._lines[start:stop])
        # Empty lines in front give every node its line in the file.
        if not indent:
            return _parse("\n" * start + text).body
        (head,) = _parse("\n" * (start - 1) + "if 1:\n" + text).body
        if not isinstance(head, ast.If) or head.orelse:
            raise ValueError("the block ends before the lines do")
        return head.body

    def _with_long_block(
        self, start: int, stop: int, indent: str, depth: int
    ) -> list[ast.stmt] | None:
        """Statements of which the last has a long block, parsed in pieces; None where that is not so."""
        if depth == _DEEPEST or sum(map(len, self._lines[start:stop])) < 2 * _PIECE:
            return None
        inner = self._indent_of_last(start, stop, indent)
        cuts = [] if inner is None else self._cuts(start, stop, inner)[1:]
        if inner is None or not cuts:
            return None
        try:
            found = self._piece(start, cuts[0], indent)
            block = _only_block(found[-1])
            if block is None or block[-1].col_offset != len(inner):
                return None
            block += self.statements(cuts[0], stop, inner, depth + 1)
        except (SyntaxError, ValueError):
            return None
        found[-1].end_lineno, found[-1].end_col_offset = (
            block[-1].end_lineno,
            block[-1].end_col_offset,
        )
        return found

    def _indent_of_last(self, start: int, stop: int, indent: str) -> str | None:
        """How the block of the last statement is indented, most likely."""
        begins = (n for n in range(stop - 1, start - 1, -1) if self._may_begin(n, indent))
        for line in self._lines[next(begins, stop) + 1 : stop]:
            inner = line[: len(line) - len(line.lstrip(" \t"))]
            if line.strip() and line[len(inner)] != "#":
                return inner if inner.startswith(indent) and inner != indent else None
        return None


def _only_block(statement: ast.stmt) -> list[ast.stmt] | None:
    """The block of a statement that has just one, and ends with it."""
    if isinstance(statement, _WITH_ONE_BLOCK) and not getattr(statement, "orelse", None):
        return statement.body
    return None
