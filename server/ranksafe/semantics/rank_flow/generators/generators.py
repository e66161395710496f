"""Runs generators and the iterators of the project's objects, for what loops over them do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.arguments import Given
from ranksafe.semantics.rank_flow.generators.steps import counted, without_yields, yields_in
from ranksafe.semantics.rank_flow.joined_values import joined
from ranksafe.semantics.rank_flow.run import MAXIMUM_DEPTH, Frame
from ranksafe.semantics.rank_flow.traces import Branch, Call, Item, Loop, Yield, matters_to_caller
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    SAME,
    Known,
    Many,
    Origin,
    Sameness,
    Thing,
    Unknown,
    Value,
    evenness,
    origin_of,
)
from ranksafe.semantics.walking import FUNCTIONS

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

_SCOPES = (*FUNCTIONS, ast.Lambda, ast.ClassDef)
_NOT_ITERATED = frozenset({"contextmanager", "asynccontextmanager", "fixture"})


class Generators:
    """What generators and iterable objects hand out on this rank."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter
        self._known = interpreter.functions.generators

    def is_generator(self, function: ast.AST | None) -> bool:
        """Whether a call of the function gives something to iterate."""
        if not isinstance(function, FUNCTIONS):
            return False
        found = self._known.get(id(function))
        if found is None:
            found = self._known[id(function)] = _yields(function) and not is_context(function)
        return found

    def called(
        self, node: ast.AST, function: Thing, receiver: Thing | None, given: Given | None
    ) -> Value:
        """What a call of a generator gives; its collectives are written to the trace, as if they came before the
        loop."""
        run = self._run
        frame = self._interpreter.frame_for(function, receiver, node, given)
        if self._interpreter.functions.performs(function):
            outer, run.items = run.items, []
            found, items = self._values(frame, function)
            run.items = outer
            items = without_yields(items)
            if matters_to_caller(items):
                run.items.append(Call(run.place(node), items))
            return found
        return self._without_effects(frame, function)

    def is_told(self, receiver: Thing | None, values: list[Value]) -> bool:
        """Whether a generator gets something that differs between ranks."""
        held = {} if receiver is None else self._run.heap.get(receiver, {})
        return any(map(self._differs, (*values, *held.values())))

    def _differs(self, value: Value) -> bool:
        if value.sameness.varies or evenness(value).varies:
            return True
        if isinstance(value, Thing):
            return value.kind == "loader" and value.detail == "sharded"
        origin = origin_of(value)
        return origin is not None and origin.sameness.varies

    def iterated(self, value: Value, node: ast.AST) -> Value:
        """What a loop over a value runs over: an object's iterator instead of the object."""
        if not isinstance(value, Thing) or value.kind != "object":
            return value
        method = self._interpreter.functions.method(value, "__iter__")
        if method is None:
            return self._by_index(value, node)
        found = self._run_method(value, method, node)
        if isinstance(found, Thing) and found.kind == "object":
            return self._by_index(value, node) if found is value else self.iterated(found, node)
        return found

    def data_of(self, value: Value, node: ast.AST) -> Value:
        """What a loader of an object as its data set reads: by index where the object has a length."""
        if not isinstance(value, Thing) or value.kind != "object":
            return value
        if self._interpreter.functions.method(value, "__getitem__") is not None:
            return self._by_index(value, node)
        return self.iterated(value, node)

    def length(self, value: Value, node: ast.AST) -> Value | None:
        """``len(value)`` for an object of the project; None for others."""
        if not isinstance(value, Thing) or value.kind != "object":
            return None
        method = self._interpreter.functions.method(value, "__len__")
        return None if method is None else self._run_method(value, method, node)

    def _by_index(self, value: Thing, node: ast.AST) -> Value:
        """An object that is read by index, as often as its length says."""
        length = self.length(value, node)
        if length is None:
            return NOTHING_KNOWN
        if isinstance(length, Known) and isinstance(length.constant, int):
            origin = origin_of(length)
            even = Sameness.SAME if origin is None else Sameness.UNKNOWN
            return Unknown(origin=origin, length=even, steps=length.constant)
        return Unknown(origin=origin_of(length), length=length.sameness)

    def _run_method(self, value: Thing, method: Thing, node: ast.AST) -> Value:
        """What a method without arguments returns; nothing that it does is kept."""
        if len(self._run.frame.calls) >= MAXIMUM_DEPTH or method.node in self._interpreter.running:
            return NOTHING_KNOWN
        frame = self._interpreter.frame_for(method, value, node, Given())
        frame.quiet = True
        return self._without_effects(frame, method)

    def _without_effects(self, frame: Frame, function: Thing) -> Value:
        run = self._run
        outer, heap = run.items, run.heap_now()
        run.items = []
        if self.is_generator(function.node):
            found, _ = self._values(frame, function)
        else:
            assert function.node is not None
            found = self._interpreter.run_frame(frame, function.node)
        run.items, run.heap = outer, heap
        return found

    def _values(self, frame: Frame, function: Thing) -> tuple[Value, list[Item]]:
        """Run a generator: what a loop over it runs over, and the trace."""
        assert function.node is not None
        frame.generates = True
        self._interpreter.run_frame(frame, function.node)
        items = self._run.items
        if next(yields_in(items), None) is None:
            return NOTHING_KNOWN, items
        steps = counted(items, self._run.world.size)
        each: Value | None = None
        for value in _handed_out(items, None):
            each = value if each is None else _either(each, value)
        assert each is not None
        found = Unknown(
            each.sameness,
            steps.origin or origin_of(each),
            length=steps.even,
            each=each,
            steps=steps.exact,
        )
        return found, items


def _handed_out(items: list[Item], own: Origin | None) -> Iterator[Value]:
    """The values; those that are made of the rank's own data are data."""
    for item in items:
        if isinstance(item, Yield):
            yield item.value if own is None else _as_data(item.value, own)
        elif isinstance(item, Branch):
            yield from _handed_out([*item.then, *item.otherwise], own)
        elif isinstance(item, Call):
            yield from _handed_out(item.body, own)
        elif isinstance(item, Loop):
            source = None if item.source is None else origin_of(item.source)
            differs = source is not None and source.sameness.varies
            yield from _handed_out(item.body, source if differs else own)


def _as_data(value: Value, own: Origin) -> Value:
    if isinstance(value, Many):
        return replace(value, items=tuple(_as_data(item, own) for item in value.items))
    if isinstance(value, Unknown) and value.sameness in (Sameness.UNKNOWN, Sameness.RANK):
        return replace(value, sameness=Sameness.DATA, origin=value.origin or own)
    return value


def _either(one: Value, other: Value) -> Value:
    if isinstance(one, Many) and isinstance(other, Many) and len(one.items) == len(other.items):
        return Many(tuple(map(_either, one.items, other.items)))
    return joined(one, other, SAME)


def is_context(function: ast.AST | None) -> bool:
    """Whether a function makes a context of a generator."""
    return isinstance(function, FUNCTIONS) and any(
        getattr(part, "id", getattr(part, "attr", "")) in _NOT_ITERATED
        for decorator in function.decorator_list
        for part in ast.walk(decorator)
    )


def _yields(node: ast.AST) -> bool:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(child, _SCOPES) and _yields(child):
            return True
    return False
