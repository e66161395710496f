"""The cells of a diagram: one step of one rank each."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal

from ranksafe.rank_flow.traces import (
    Branch,
    Call,
    Decision,
    Event,
    Exit,
    Loop,
    Opaque,
    Place,
)

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


def leaf_cell(item: Event | Exit | Opaque, depth: int) -> Cell:
    """An operation, a way out, or a call that may do anything."""
    if isinstance(item, Event):
        return Cell("operation", item.operation.word, item.place, depth, _is_for_both(item))
    if isinstance(item, Exit):
        return Cell("exit", item.kind, item.place, depth)
    return Cell(
        "opaque", _text(item.place, getattr(item.place.node, "func", None)), item.place, depth
    )


def call_cell(item: Call, depth: int) -> Cell:
    """The header of what a call of the project's own function does."""
    return Cell(
        "call", _text(item.place, getattr(item.place.node, "func", None)), item.place, depth
    )


def header_cell(kind: CellKind, item: Branch | Loop | Decision, depth: int) -> Cell:
    """The header of a branch or loop."""
    node = item.place.node
    shown = getattr(node, "test", getattr(node, "subject", getattr(node, "iter", None)))
    return Cell(kind, _text(item.place, shown), item.place, depth)


def _is_for_both(event: Event) -> bool:
    """Whether ranks 0 and 1 both have to take part, as far as is known."""
    if event.operation.kind == "point-to-point" or not event.group_known:
        return False
    members = None if event.group is None else event.group.detail
    return members is None or (0 in members and 1 in members)


def _text(place: Place, node: ast.AST | None) -> str:
    """A node as written, on one line and not too long."""
    written = " ".join(place.module.text_of(place.node if node is None else node).split())
    return written if len(written) <= _LONGEST_TEXT else written[: _LONGEST_TEXT - 1] + "…"
