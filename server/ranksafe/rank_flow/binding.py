"""What names, attributes, items and the parts of tuples are bound to."""

from __future__ import annotations

import ast

from ranksafe.rank_flow.expressions.groups import with_group
from ranksafe.rank_flow.library_calls.iteration import element
from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.values import (
    NOTHING_KNOWN,
    Abstract,
    Constant,
    Object,
    Sequence,
    Value,
    combined,
    listed,
    part_of,
    text_of,
    whole_number,
    with_entries,
    with_entry,
)


def bind(run: Run, target: ast.expr, value: Value) -> None:
    """Give a target a value."""
    if isinstance(target, ast.Name):
        run.frame.variables[target.id] = value
    elif isinstance(target, ast.Attribute):
        base = run.value(target.value)
        if isinstance(base, Object):
            run.set_attribute(base, target.attr, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        value = _unpacked(value, target.elts)
        for index, part in enumerate(target.elts):
            if isinstance(part, ast.Starred):
                inner = _part_at(value, index, len(target.elts))
                bind(run, part.value, inner if isinstance(inner, Sequence) else combined(value))
            else:
                bind(run, part, _part_at(value, index, len(target.elts)))
    elif isinstance(target, ast.Subscript) and _bind_group(run, target, value):
        pass
    elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        # ``found[0] = x``: the container may now differ where x does.
        before = run.variable(target.value.id)
        if isinstance(before, Abstract):
            _bind_item(run, target.value, before, run.look(target.slice), value)
        elif isinstance(before, Sequence):
            bind(run, target.value, _with_item(before, run.value(target.slice), value))


def changed_in_place(run: Run, target: ast.expr, value: Value) -> None:
    """What a variable or attribute holds, after a method has changed it: also where an outer function holds it."""
    frame = run.frame
    if isinstance(target, ast.Name):
        while target.id not in frame.variables and frame.outer is not None:
            frame = frame.outer
        frame.variables[target.id] = value
    elif isinstance(target, ast.Attribute):
        bind(run, target, value)


def _bind_item(run: Run, container: ast.Name, before: Abstract, index: Value, value: Value) -> None:
    """``found[index] = value``: under a known key of a dictionary the others stay what they are."""
    key = text_of(index)
    if key is not None:
        run.frame.variables[container.id] = with_entry(before, key, value)
    elif value.varies > before.varies:
        bind(run, container, combined(before, value))
    elif before.entries is not None:
        run.frame.variables[container.id] = before.changed()


def _bind_group(run: Run, target: ast.Subscript, value: Value) -> bool:
    """``groups[key] = group``; whether the container was a dictionary of groups."""
    if not isinstance(target.value, (ast.Name, ast.Attribute)):
        return False
    if isinstance(target.value, ast.Name):
        before = run.variable(target.value.id)
    else:
        before = run.value(target.value)
    if not isinstance(before, Abstract) or before.groups is None:
        return False
    key = run.value(target.slice)
    after = with_group(before, key, value)
    if after.groups is None:
        after = combined(before, value).changed(length=after.length, groups=None)
        name = text_of(key)
        if name is not None and not before.groups:
            after = with_entries(after, {name: value}, before.changed(groups=None))
    bind(run, target.value, after)
    return True


def _part_at(value: Value, index: int, count: int) -> Value:
    if isinstance(value, Sequence) and len(value.items) == count:
        return value.items[index]
    if isinstance(value, Abstract):
        return part_of(value)
    return NOTHING_KNOWN


def bind_each(run: Run, target: ast.expr, iterable: Value) -> None:
    """Give a loop's target what any step gives it."""
    bind(run, target, element(iterable))


def bind_item(run: Run, target: ast.expr, iterable: Value, index: int) -> None:
    """Give a loop's target the value of one step of known number."""
    if isinstance(iterable, Sequence):
        bind(run, target, iterable.items[index])
    elif isinstance(iterable, Constant):
        bind(run, target, Constant(iterable.constant[index], None))


def _unpacked(value: Value, targets: list[ast.expr]) -> Value:
    """``first, *rest = values``: one value for each target."""
    starred = [index for index, item in enumerate(targets) if isinstance(item, ast.Starred)]
    if not isinstance(value, Sequence) or len(starred) != 1 or len(value.items) < len(targets) - 1:
        return value
    start = starred[0]
    end = len(value.items) - (len(targets) - start - 1)
    items = value.items
    return listed((*items[:start], listed(items[start:end]), *items[end:]))


def _with_item(before: Sequence, index: Value, value: Value) -> Value:
    number = whole_number(index)
    if number is not None and 0 <= number < len(before.items):
        return listed((*before.items[:number], value, *before.items[number + 1 :]))
    return combined(before, value)
