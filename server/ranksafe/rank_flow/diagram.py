"""What two ranks do in one function, side by side: rows that can be printed as two columns."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

from ranksafe.rank_flow.comparison.comparison import Comparison
from ranksafe.rank_flow.comparison.differences import Mismatch
from ranksafe.rank_flow.comparison.separation import contains
from ranksafe.rank_flow.comparison.walk import skipped
from ranksafe.rank_flow.traces import (
    Branch,
    Call,
    Decision,
    Event,
    Exit,
    Item,
    Loop,
    Opaque,
    Place,
    events_in,
)
from ranksafe.rank_flow.values import Varies
from ranksafe.semantics.module import Module

CellKind = Literal[
    "operation", "exit", "opaque", "call", "taken", "not-taken", "if", "unless", "else", "loop"
]
_LONGEST_TEXT = 48


@dataclass(frozen=True, slots=True)
class Cell:
    """What one rank does."""

    kind: CellKind
    text: str
    """The operation, the condition, the function called or how it leaves; as written."""
    place: Place
    depth: int
    """How many undecided branches, loops and calls are around it."""
    for_both: bool = True
    """For an operation: whether both ranks have to take part."""


def cell_of(item: Event | Exit | Opaque | Call, depth: int) -> Cell:
    """An operation, a way out, a call that may do anything, or the header of what a function of the project does."""
    if isinstance(item, Event):
        together = not skipped(item, (0, 1))
        return Cell("operation", item.operation.word, item.place, depth, together)
    if isinstance(item, Exit):
        return Cell("exit", item.kind, item.place, depth)
    kind: CellKind = "call" if isinstance(item, Call) else "opaque"
    return Cell(kind, _text(item.place, getattr(item.place.node, "func", None)), item.place, depth)


def header_cell(kind: CellKind, item: Branch | Loop | Decision, depth: int) -> Cell:
    """The header of a branch or loop."""
    node = item.place.node
    shown = getattr(node, "test", getattr(node, "subject", getattr(node, "iter", None)))
    return Cell(kind, _text(item.place, shown), item.place, depth)


def _text(place: Place, node: ast.AST | None) -> str:
    """A node as written, on one line and not too long."""
    written = " ".join(place.module.text_of(place.node if node is None else node).split())
    return written if len(written) <= _LONGEST_TEXT else written[: _LONGEST_TEXT - 1] + "…"


@dataclass(frozen=True, slots=True)
class Traces:
    """What ranks 0 and 1 do in one function, or in the statements of a file outside functions."""

    root: ast.AST
    module: Module
    first: list[Item]
    second: list[Item]

    @property
    def name(self) -> str:
        """The function's name; empty for the statements outside functions."""
        return getattr(self.root, "name", "")


@dataclass(frozen=True, slots=True)
class Row:
    """One step; None: the rank does nothing there."""

    cells: tuple[Cell | None, Cell | None]
    parts: bool = False
    """Whether the ranks part here, or do not fit together."""


def rows(traces: Traces) -> list[Row]:
    """The diagram; empty when neither rank does anything that the other could notice."""
    found = Comparison((0, 1)).run(traces.first, traces.second)
    unfit = {id(item.event.place.node) for item in found if isinstance(item, Mismatch)}
    made = list(_Diagram(unfit).level(traces.first, traces.second, 0, is_body=True))
    performs = any(
        cell is not None and cell.kind in ("operation", "opaque")
        for row in made
        for cell in row.cells
    )
    return made if performs else []


class _Diagram:
    """Lays two traces side by side: the same places of the program in the same row."""

    def __init__(self, unfit: set[int]) -> None:
        self._unfit = unfit

    def level(
        self, first: list[Item], second: list[Item], depth: int, *, is_body: bool = False
    ) -> Iterator[Row]:
        """The rows of two lists of items; ``is_body``: of a function, whose return at the end says nothing."""
        matcher = SequenceMatcher(None, _keys(first), _keys(second), autojunk=False)
        parted: list[Decision] = []
        rows_of: dict[int, Row] = {}
        for tag, start, end, other_start, other_end in matcher.get_opcodes():
            mine, theirs = first[start:end], second[other_start:other_end]
            if tag != "equal":
                yield from self._different(mine, theirs, depth, parted, rows_of)
                continue
            for one, other in zip(mine, theirs, strict=True):
                if isinstance(one, Decision) and isinstance(other, Decision):
                    if one.taken is not other.taken:
                        parted.append(one)
                        rows_of[id(one)] = _decision_row(one, other, depth)
                    continue
                if is_body and isinstance(one, Exit) and one.kind == "return":
                    if one is first[-1] and other is second[-1]:
                        continue
                for row in self._same(one, other, depth):
                    parted.clear()
                    yield row

    def _same(self, one: Item, other: Item, depth: int) -> Iterator[Row]:
        """The rows of an item that both ranks have."""
        if isinstance(one, Event) and isinstance(other, Event):
            unfit = id(one.place.node) in self._unfit
            yield Row((cell_of(one, depth), cell_of(other, depth)), unfit)
        elif isinstance(one, (Exit, Opaque)) and isinstance(other, (Exit, Opaque)):
            yield Row((cell_of(one, depth), cell_of(other, depth)))
        elif isinstance(one, Branch) and isinstance(other, Branch):
            then = list(self.level(one.then, other.then, depth + 1))
            otherwise = list(self.level(one.otherwise, other.otherwise, depth + 1))
            yield from _branch(one, depth, then, otherwise, (True, True))
        elif isinstance(one, Loop) and isinstance(other, Loop):
            inside = list(self.level(one.body, other.body, depth + 1))
            yield from _below(_loop(one, other, depth), inside)
        elif isinstance(one, Call) and isinstance(other, Call):
            inside = list(self.level(one.body, other.body, depth + 1, is_body=True))
            yield from _below(_both(cell_of(one, depth)), inside)

    def _different(
        self,
        mine: list[Item],
        theirs: list[Item],
        depth: int,
        parted: list[Decision],
        rows_of: dict[int, Row],
    ) -> Iterator[Row]:
        """The rows of what the ranks do differently, below the branch at which they went different ways."""
        columns = [
            list(self._alone(items, depth, side)) for items, side in ((mine, 0), (theirs, 1))
        ]
        if not any(columns):
            return
        pairs = [Row((one, other)) for one, other in zip_longest(*columns)]
        differs = _expected(columns[0]) != _expected(columns[1])
        if parted:
            nodes = [cell.place for column in columns for cell in column]
            around = [
                item for item in parted if any(contains(item.place.node, place) for place in nodes)
            ]
            yield replace(rows_of[id((around or parted)[-1])], parts=differs)
            parted.clear()
        elif differs:
            pairs[0] = replace(pairs[0], parts=True)
        yield from pairs

    def _alone(self, items: list[Item], depth: int, side: int) -> Iterator[Cell]:
        """The cells of what only one rank does."""
        for item in items:
            made: list[Row] = []
            if isinstance(item, (Event, Exit, Opaque)):
                yield cell_of(item, depth)
            elif isinstance(item, Branch):
                then = self._one_sided(item.then, depth + 1, side)
                otherwise = self._one_sided(item.otherwise, depth + 1, side)
                made = _branch(item, depth, then, otherwise, (side == 0, side == 1))
            elif isinstance(item, (Loop, Call)):
                header = (
                    cell_of(item, depth)
                    if isinstance(item, Call)
                    else header_cell("loop", item, depth)
                )
                inside = self._one_sided(item.body, depth + 1, side)
                made = _below(_on_side(header, side), inside)
            for row in made:
                cell = row.cells[side]
                if cell is not None:
                    yield cell

    def _one_sided(self, items: list[Item], depth: int, side: int) -> list[Row]:
        return [_on_side(cell, side) for cell in self._alone(items, depth, side)]


def _keys(items: list[Item]) -> list[tuple[type, int, str]]:
    return [
        (type(item), id(item.place.node), item.operation.word if isinstance(item, Event) else "")
        for item in items
    ]


def _both(cell: Cell, *, parts: bool = False) -> Row:
    return Row((cell, cell), parts)


def _on_side(cell: Cell, side: int) -> Row:
    return Row((cell, None) if side == 0 else (None, cell))


def _decision_row(one: Decision, other: Decision, depth: int) -> Row:
    cells = [
        header_cell("taken" if item.taken else "not-taken", item, depth) for item in (one, other)
    ]
    return Row((cells[0], cells[1]))


def _loop(one: Loop, other: Loop, depth: int) -> Row:
    """The header of a loop; ranks part in one that they may run unequally often."""
    varies = isinstance(one.count, Varies) and one.count.certain
    uneven = (varies or one.count != other.count) and not one.joined
    return _both(header_cell("loop", one, depth), parts=uneven)


def _branch(
    item: Branch, depth: int, then: list[Row], otherwise: list[Row], sides: tuple[bool, bool]
) -> list[Row]:
    """The rows of an undecided branch; ranks part in one that each decides otherwise, where its arms differ."""

    def header(kind: CellKind, *, parts: bool = False) -> Row:
        cell = header_cell(kind, item, depth)
        return Row((cell if sides[0] else None, cell if sides[1] else None), parts)

    if not then and not otherwise:
        return []
    words = [
        [event.operation.word for event in events_in(arm)] for arm in (item.then, item.otherwise)
    ]
    leaves = any(isinstance(inner, Exit) for inner in (*item.then, *item.otherwise))
    parts = item.condition.varies.certain and (words[0] != words[1] or leaves)
    if not then:
        return [header("unless", parts=parts), *otherwise]
    found = [header("if", parts=parts), *then]
    return [*found, header("else"), *otherwise] if otherwise else found


def _below(header: Row, inside: list[Row]) -> list[Row]:
    return [header, *inside] if inside else []


def _expected(cells: list[Cell]) -> list[str]:
    """What a rank does that the other has to do, too."""
    return [
        cell.text
        for cell in cells
        if cell.for_both and cell.kind in ("operation", "opaque", "exit")
    ]
