"""Runs generators and the iterators of the project's objects, for what loops over them do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from ranksafe.rank_flow.frames import Arguments, frame_for, run_frame
from ranksafe.rank_flow.generators.steps import counted, without_yields, yields_in
from ranksafe.rank_flow.run import DEEPEST, Frame, Run
from ranksafe.rank_flow.syntax import is_generator
from ranksafe.rank_flow.traces import Branch, Call, Item, Loop, Yield, matters_to_caller
from ranksafe.rank_flow.values import (
    NOTHING_KNOWN,
    SAME,
    Abstract,
    Object,
    Origin,
    Sequence,
    Value,
    Varies,
    joined,
    listed,
    origin_of,
    whole_number,
)


def generator_called(
    run: Run, node: ast.Call, function: Object, receiver: Object | None, given: Arguments
) -> Value:
    """What a call of a generator gives; its collectives are written to the trace, as if they came before the
    loop."""
    frame = frame_for(run, function, receiver, node, given)
    if run.functions.performs(function):
        outer, run.items = run.items, []
        found, items = _values(run, frame, function)
        run.items = outer
        items = without_yields(items)
        if matters_to_caller(items):
            run.items.append(Call(run.place(node), items))
        return found
    return _without_effects(run, frame, function)


def iterated(run: Run, value: Value, node: ast.AST) -> Value:
    """What a loop over a value runs over: an object's iterator instead of the object."""
    if not isinstance(value, Object) or value.kind != "object":
        return value
    method = run.functions.method(value, "__iter__")
    if method is None:
        return _by_index(run, value, node)
    found = _run_method(run, value, method, node)
    if isinstance(found, Object) and found.kind == "object":
        return _by_index(run, value, node) if found is value else iterated(run, found, node)
    return found


def data_of(run: Run, value: Value, node: ast.AST) -> Value:
    """What a loader of an object as its data set reads: by index where the object has a length."""
    if not isinstance(value, Object) or value.kind != "object":
        return value
    if run.functions.method(value, "__getitem__") is not None:
        return _by_index(run, value, node)
    return iterated(run, value, node)


def object_length(run: Run, value: Value, node: ast.AST) -> Value | None:
    """``len(value)`` for an object of the project; None for others."""
    if not isinstance(value, Object) or value.kind != "object":
        return None
    method = run.functions.method(value, "__len__")
    return None if method is None else _run_method(run, value, method, node)


def _by_index(run: Run, value: Object, node: ast.AST) -> Value:
    """An object that is read by index, as often as its length says."""
    length = object_length(run, value, node)
    if length is None:
        return NOTHING_KNOWN
    steps = whole_number(length)
    if steps is not None:
        origin = origin_of(length)
        even = Varies.NO if origin is None else Varies.PERHAPS
        return Abstract(origin=origin, length=even, steps=steps)
    return Abstract(origin=origin_of(length), length=length.varies)


def _run_method(run: Run, value: Object, method: Object, node: ast.AST) -> Value:
    """What a method without arguments returns; nothing that it does is kept."""
    if len(run.frame.calls) >= DEEPEST or method.node in run.running:
        return NOTHING_KNOWN
    frame = frame_for(run, method, value, node, Arguments())
    frame.quiet = True
    return _without_effects(run, frame, method)


def _without_effects(run: Run, frame: Frame, function: Object) -> Value:
    outer, heap = run.items, dict(run.heap)
    run.items = []
    if function.node is not None and is_generator(function.node):
        found, _ = _values(run, frame, function)
    else:
        assert function.node is not None
        found = run_frame(run, frame, function.node)
    run.items, run.heap = outer, heap
    return found


def _values(run: Run, frame: Frame, function: Object) -> tuple[Value, list[Item]]:
    """Run a generator: what a loop over it runs over, and the trace."""
    assert function.node is not None
    frame.generates = True
    run_frame(run, frame, function.node)
    items = run.items
    if next(yields_in(items), None) is None:
        return NOTHING_KNOWN, items
    steps = counted(items, run.world.size)
    each: Value | None = None
    for value in _handed_out(items, None):
        each = value if each is None else _either(each, value)
    assert each is not None
    found = Abstract(
        each.varies,
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
            differs = source is not None and source.varies.certain
            yield from _handed_out(item.body, source if differs else own)


def _as_data(value: Value, own: Origin) -> Value:
    if isinstance(value, Sequence):
        return replace(value, items=tuple(_as_data(item, own) for item in value.items))
    if isinstance(value, Abstract) and value.varies in (Varies.PERHAPS, Varies.BY_RANK):
        return replace(value, varies=Varies.BY_DATA, origin=value.origin or own)
    return value


def _either(one: Value, other: Value) -> Value:
    if (
        isinstance(one, Sequence)
        and isinstance(other, Sequence)
        and len(one.items) == len(other.items)
    ):
        return listed(tuple(map(_either, one.items, other.items)))
    return joined(one, other, SAME)
