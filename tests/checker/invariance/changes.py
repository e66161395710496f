"""Changes of a program's text that remember on which line of the original each line of the result stood."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the original text, as offsets of characters."""

    start: int
    end: int

    def holds(self, other: Span) -> bool:
        return self.start <= other.start < self.end and other.end <= self.end


@dataclass(frozen=True, slots=True)
class Edit:
    """What stands in the place of a span: new text, and copies of parts of the original, which may be edited, too."""

    span: Span
    pieces: tuple[str | Span, ...]
    line: int
    """The original line (from 1) to which the new text belongs."""

    @property
    def order(self) -> tuple[int, bool, int]:
        """Insertions first, then the edits that hold others."""
        return self.span.start, self.span.start != self.span.end, -self.span.end


@dataclass(frozen=True, slots=True)
class Change:
    """Edits that keep the program's meaning if all of them are made."""

    what: str
    edits: tuple[Edit, ...]
    as_one: range = range(0)
    """Original lines that may stand for each other: what is said of a call and of what it calls is the same."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A text with its changes. ``origins``: the original line of each line, all from 1."""

    text: str
    origins: tuple[int, ...]


class Source:
    """A text with its tree, and where the nodes stand in the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, the nearest first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def offset(self, line: int, column: int) -> int:
        """``column`` counts bytes, as `ast` does."""
        before = self._lines[line - 1].encode()[:column]
        return self._starts[line - 1] + len(before.decode())

    def start(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> int:
        return self.offset(node.lineno, node.col_offset)

    def span(self, node: ast.expr | ast.stmt) -> Span:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return Span(self.start(node), self.offset(node.end_lineno, node.end_col_offset))

    def written(self, span: Span) -> str:
        return self.text[span.start : span.end]

    def line(self, number: int) -> str:
        return self._lines[number - 1]

    def whole_lines(self, first: int, last: int) -> Span:
        return Span(self._starts[first - 1], self._starts[last])

    def line_at(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1


def changed(source: Source, changes: Sequence[Change]) -> Changed:
    """Make all the changes."""
    edits = [_Owned(edit, change) for change in changes for edit in change.edits]
    edits.sort(key=lambda item: item.edit.order)
    text: list[str] = []
    origins: list[int] = []
    blank = True
    for part, line in _rendered(source, Span(0, len(source.text)), edits):
        if not text or text[-1].endswith("\n"):
            origins.append(line)
        elif blank:
            origins[-1] = line
        blank = not part.strip() and (blank or part.endswith("\n"))
        text.append(part)
    return Changed("".join(text), tuple(origins))


@dataclass(frozen=True, slots=True)
class _Owned:
    edit: Edit
    change: Change


def _rendered(source: Source, span: Span, edits: Sequence[_Owned]) -> Iterator[tuple[str, int]]:
    """Parts of lines, each with its original line."""
    position = span.start
    for owned in edits:
        edit = owned.edit
        if edit.span.start < position:
            continue  # It changes what an outer edit copies.
        yield from _copied(source, Span(position, edit.span.start))
        for piece in edit.pieces:
            if isinstance(piece, Span):
                others = (item for item in edits if item.change is not owned.change)
                inner = [item for item in others if piece.holds(item.edit.span)]
                yield from _rendered(source, piece, inner)
            else:
                yield from ((part, edit.line) for part in piece.splitlines(keepends=True))
        position = edit.span.end
    yield from _copied(source, Span(position, span.end))


def _copied(source: Source, span: Span) -> Iterator[tuple[str, int]]:
    parts = source.written(span).splitlines(keepends=True)
    yield from zip(parts, count(source.line_at(span.start)), strict=False)
