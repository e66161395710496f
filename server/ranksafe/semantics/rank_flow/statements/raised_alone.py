"""Exceptions that one rank meets alone, in a ``try`` and in what it calls: they skip the collectives that follow."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.statements.paths import exits_in
from ranksafe.semantics.rank_flow.traces import (
    Branch,
    Call,
    Event,
    Exit,
    Failure,
    Item,
    Loop,
    events_in,
)
from ranksafe.semantics.rank_flow.values import Origin, Sameness, origin_of

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module
    from ranksafe.semantics.rank_flow.functions import Functions

_ENDS_ITERATION = frozenset({"StopIteration", "StopAsyncIteration"})
"""They say how often a loop runs, which is counted elsewhere."""
_ANCESTORS = 6
Met = tuple[Exit | Failure, Origin | None, Event | None]
"""What is raised, why on this rank, and the first collective that is skipped."""


def met_alone(items: list[Item], later: list[list[Item]]) -> Iterator[Met]:
    """What a rank may raise below while others do not; `later` is what it skips then, nearest first."""
    for index, item in enumerate(items):
        rest = [items[index + 1 :], *later]
        if isinstance(item, Failure):
            yield item, item.origin, _missed(rest)
        elif isinstance(item, Branch):
            arms = (item.then, item.otherwise)
            raised = [_raise_in(arm) for arm in arms]
            for arm, found, other in zip(arms, raised, reversed(arms), strict=True):
                alone = item.condition.sameness is Sameness.DATA and not all(raised)
                if alone and found is not None and not any(events_in(arm)):
                    yield found, origin_of(item.condition), _missed([other, *rest])
                else:
                    yield from met_alone(arm, rest)
        elif isinstance(item, Loop):
            yield from met_alone(item.body, rest if item.joined else [item.body, *rest])
        elif isinstance(item, Call):
            yield from met_alone(item.body, rest)


def _raise_in(arm: list[Item]) -> Exit | None:
    """The ``raise`` that an arm, or a call in it, comes to in any case."""
    for item in arm:
        if isinstance(item, Exit):
            return item if item.kind == "raise" else None
        if isinstance(item, Call) and (found := _raise_in(item.body)) is not None:
            return found
    return None


def _missed(parts: list[list[Item]]) -> Event | None:
    """The first collective of everybody: the forward of a replica waits for nobody."""
    for event in (event for part in parts for event in events_in(part, certain=True)):
        operation, model = event.operation, event.model
        replica = operation.word == "forward" and model is not None and model.detail == "ddp"
        if operation.kind != "point-to-point" and event.group_known and not replica:
            return event
    return None


def catches(names: set[str], item: Exit | Failure) -> bool:
    """Whether a handler for these exceptions, for all where none is named, is for what an item raises."""
    if not item.raises or item.raises & _ENDS_ITERATION:
        return False
    return not names or not item.raises.isdisjoint(names)


def without_failures(items: list[Item]) -> list[Item]:
    """A trace for others to read: what may fail has been judged."""
    for item in items:
        if isinstance(item, (Loop, Call)):
            item.body = without_failures(item.body)
        elif isinstance(item, Branch):
            item.then = without_failures(item.then)
            item.otherwise = without_failures(item.otherwise)
    return [item for item in items if not isinstance(item, Failure)]


def ends_in_raise(function: ast.AST | None) -> bool:
    """Whether a function raises where it does not return before."""
    body = getattr(function, "body", None)
    return isinstance(body, list) and bool(body) and isinstance(body[-1], ast.Raise)


def given_up(items: list[Item]) -> Exit | None:
    """What a handler raises, or ends the process with, itself or in what it calls."""
    for item in exits_in(items):
        if item.kind in ("raise", "exit"):
            return item
    calls = (item.body for item in items if isinstance(item, Call))
    return next((found for found in map(given_up, calls) if found is not None), None)


def names_of_raised(functions: Functions, module: Module, node: ast.expr | None) -> frozenset[str]:
    """The class that ``raise Error`` or ``raise Error(...)`` names, with those it derives from; empty for others."""
    called = node.func if isinstance(node, ast.Call) else node
    found: set[str] = set()
    pending = [] if called is None else [(module, called)]
    for _ in range(_ANCESTORS):
        if not pending:
            break
        where, expression = pending.pop(0)
        word = getattr(expression, "attr", getattr(expression, "id", ""))
        built_in = getattr(builtins, word, None)
        if isinstance(built_in, type) and issubclass(built_in, BaseException):
            found |= {ancestor.__name__ for ancestor in built_in.__mro__}
            continue
        cls = functions.named(where, expression)
        if cls is not None and cls.module is not None and isinstance(cls.node, ast.ClassDef):
            found.add(word)
            pending += [(cls.module, base) for base in cls.node.bases]
    return frozenset(found - {"object"})
