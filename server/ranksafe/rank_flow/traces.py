"""What one rank does, as far as other ranks notice: a tree of collectives, undecided branches, loops and exits."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ranksafe.rank_flow.operations import Operation
from ranksafe.rank_flow.values import Object, Value, Varies
from ranksafe.semantics.module import Module

ExitKind = Literal["return", "break", "continue", "raise", "exit"]


@dataclass(slots=True)
class Place:
    """A node of a file, with the calls on the way to it, outermost first."""

    node: ast.AST
    module: Module
    calls: tuple[tuple[ast.AST, Module], ...] = ()


@dataclass(slots=True)
class Event:
    """A collective, or something that performs collectives."""

    operation: Operation
    place: Place
    group: Object | None = None
    """None: the default group, or one that is not known."""
    group_known: bool = True
    root: Value | None = None
    shape: Varies | tuple[int, ...] = Varies.PERHAPS
    members: tuple[int, ...] | None = None
    """For the construction of a group: its ranks."""
    peer: Value | None = None
    """For point-to-point: the other rank."""
    tag: Value | None = None
    """For point-to-point: what tells messages of one pair of ranks apart; None: not given."""
    model: Object | None = None


@dataclass(slots=True)
class Decision:
    """A branch that this rank decides for itself; kept as evidence of where ranks separate."""

    place: Place
    taken: bool
    condition: Value


@dataclass(slots=True)
class Branch:
    """A branch that is not decided by the rank alone."""

    place: Place
    condition: Value
    then: list[Item]
    otherwise: list[Item]


@dataclass(slots=True)
class Passed:
    """A branch or loop, not decided, in which this rank does nothing that others notice."""

    place: Place


@dataclass(slots=True)
class Loop:
    """A loop; `count` is how often it runs where that is known, else whether ranks agree on it."""

    place: Place
    count: int | Varies
    body: list[Item]
    source: Value | None = None
    joined: bool = False
    """Inside ``Join`` or ``join_uneven_inputs``, which make uneven counts right."""


@dataclass(slots=True)
class Call:
    """A call of a function that is followed; a return inside ends it."""

    place: Place
    body: list[Item]


@dataclass(slots=True)
class Exit:
    """Leaves a loop, a function or the process."""

    kind: ExitKind
    place: Place


@dataclass(slots=True)
class Opaque:
    """A call of something unknown that may perform collectives."""

    place: Place


@dataclass(slots=True)
class Yield:
    """A generator hands out a value, or every value of another iterable; only in traces of generators."""

    place: Place
    value: Value
    each_of: Value | None = None
    """For ``yield from``: the other iterable."""


Item = Event | Decision | Branch | Passed | Loop | Call | Exit | Opaque | Yield


def inner_items(item: Item) -> list[Item]:
    """What an item holds: the body of a loop or call, both arms of a branch."""
    if isinstance(item, (Loop, Call)):
        return item.body
    return [*item.then, *item.otherwise] if isinstance(item, Branch) else []


def events_in(items: list[Item], *, certain: bool = False) -> Iterator[Event]:
    """The collectives below, in order; ``certain``: those outside undecided branches only."""
    for item in items:
        if isinstance(item, Event):
            yield item
        elif not (certain and isinstance(item, Branch)):
            yield from events_in(inner_items(item), certain=certain)


def performs(items: list[Item], word: str) -> bool:
    """Whether a collective of this name is among them."""
    return any(event.operation.word == word for event in events_in(items))


def matters_to_caller(items: list[Item]) -> bool:
    """Whether a call does something that others notice, or decides by the rank: a return inside it ends with it."""
    return any(
        isinstance(item, (Event, Opaque, Decision))
        or (isinstance(item, Exit) and item.kind in ("exit", "raise"))
        or matters_to_caller(inner_items(item))
        for item in items
    )


def matters(items: list[Item]) -> bool:
    """Whether other ranks could notice: a collective, an exit, or something unknown."""
    return any(
        isinstance(item, (Event, Exit, Opaque, Yield)) or matters(inner_items(item))
        for item in items
    )


def matters_behind(body: list[Item]) -> bool:
    """Whether a loop matters to what follows it: its own ``break`` and ``continue`` end with it."""
    for item in body:
        if isinstance(item, Exit):
            if item.kind not in ("break", "continue"):
                return True
        elif isinstance(item, Branch):
            if matters_behind(item.then) or matters_behind(item.otherwise):
                return True
        elif isinstance(item, Loop):
            if matters_behind(item.body):
                return True
        elif matters([item]):
            return True
    return False
