"""Containers: displays, comprehensions, and what an index takes out of them."""

from __future__ import annotations

import ast
from typing import Any

from ranksafe.rank_flow.binding import bind_each, bind_item
from ranksafe.rank_flow.calls import environment_variable
from ranksafe.rank_flow.expressions.groups import dictionary_of_groups, group_at
from ranksafe.rank_flow.expressions.slices import sliced
from ranksafe.rank_flow.generators.generators import iterated
from ranksafe.rank_flow.library_calls.iteration import element
from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.traces import Loop, matters
from ranksafe.rank_flow.values import (
    LONGEST,
    Abstract,
    Constant,
    Sequence,
    Value,
    Varies,
    combined,
    entry_at,
    length_of,
    listed,
    origin_of,
    text_of,
    truth_of,
    whole_number,
    with_entries,
)


def display(run: Run, node: ast.Tuple | ast.List | ast.Set) -> Value:
    """``(a, b)``, ``[a, b]``, ``{a, b}``."""
    items = [run.value(item) for item in node.elts]
    if any(isinstance(item, ast.Starred) for item in node.elts):
        return combined(*items)
    return listed(tuple(items))


def dictionary(run: Run, node: ast.Dict) -> Value:
    """``{a: b}``."""
    values = [run.value(item) for item in node.values]
    keys = [None if key is None else run.value(key) for key in node.keys]
    if values and all(isinstance(key, Constant) for key in keys):
        found = combined(*values)
        # A loop over it gives the keys.
        each = listed(tuple(key for key in keys if key is not None))
        groups = dictionary_of_groups(keys, values)
        found = found.changed(length=Varies.NO, each=element(each), groups=groups)
        named = {
            text: value for key, value in zip(keys, values, strict=True)
            if (text := text_of(key)) is not None
        }  # fmt: skip
        if all(text_of(key) is not None for key in keys):
            return with_entries(found, named, found)
        return found
    if not node.keys:
        return combined().changed(groups=())
    return combined(*values)


def _item_by_item(
    run: Run, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, source: Value, length: int
) -> Value | None:
    """The items of a comprehension over few values; None where a condition does not tell which are left."""
    items = []
    generator = node.generators[0]
    for index in range(length):
        bind_item(run, generator.target, source, index)
        kept = [truth_of(run.value(test)) for test in generator.ifs]
        if None in kept and False not in kept:
            return None
        if False not in kept:
            items.append(run.value(node.elt))
    return listed(tuple(items), source.origin if isinstance(source, Sequence) else None)


def comprehension(run: Run, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Value:
    """``[f(x) for x in xs if x]``, and of sets and generators."""
    saved = dict(run.frame.variables)
    outer = run.items
    sources_ = []
    conditions = []
    for generator in node.generators:
        iterable = run.value(generator.iter)
        iterable = iterated(run, iterable, generator.iter)
        sources_.append(iterable)
        bind_each(run, generator.target, iterable)
        conditions += [run.value(test) for test in generator.ifs]
    length = length_of(sources_[0])
    if len(node.generators) == 1 and not isinstance(length, Varies) and length <= LONGEST:
        items = _item_by_item(run, node, sources_[0], length)
        if items is not None:
            run.frame.variables = saved
            return items
    run.items = []
    element = run.value(node.elt)
    inner, run.items = run.items, outer
    if matters(inner):
        count: Any = length
        run.items.append(Loop(run.place(node), count, inner, sources_[0], bool(run.inside.joined)))
    run.frame.variables = saved
    found = combined(element, *sources_, *conditions)
    varies = max((item.varies for item in conditions), default=Varies.NO)
    if node.generators[0].ifs and sources_[0].varies is Varies.BY_DATA:
        varies = Varies.BY_DATA
    if varies.certain:
        origin = origin_of(*conditions) or found.origin
        return found.changed(length=varies, origin=origin)
    if len(node.generators) == 1 and not conditions and isinstance(length, Varies):
        return found.changed(length=length)
    return found


def subscript(run: Run, node: ast.Subscript) -> Value:
    """``xs[i]``, ``xs[a:b]``."""
    if run.module.qualified_name(node.value) == "os.environ":
        return environment_variable(run, node.slice, node)
    base = run.value(node.value)
    run.none_used(base, node.value)
    if isinstance(node.slice, ast.Slice):
        return _slice(run, base, node.slice)
    index = run.value(node.slice)
    number = whole_number(index)
    if isinstance(base, Sequence) and number is not None:
        if -len(base.items) <= number < len(base.items):
            item = base.items[number]
            if index.origin is not None and isinstance(item, Constant):
                return Constant(item.constant, index.origin)
            return item
    group = group_at(base, index) if isinstance(base, Abstract) else None
    if group is not None:
        return group
    entry = entry_at(base, index)
    if entry is not None:
        return entry
    if isinstance(base, Abstract) and isinstance(base.each, Abstract) and base.share is not None:
        # One of the parts of np.array_split.
        part = base.each
        return part.changed(origin=origin_of(index) or part.origin)
    found = combined(base, index)
    if index.varies is Varies.BY_DATA and _is_mask(run, node.slice):
        # A mask keeps as many elements as it has ones.
        return found.changed(
            shape=Varies.BY_DATA,
            length=Varies.BY_DATA,
            origin=origin_of(index) or found.origin,
        )
    return found


def _slice(run: Run, base: Value, node: ast.Slice) -> Value:
    bounds = [
        None if item is None else run.value(item) for item in (node.lower, node.upper, node.step)
    ]
    return sliced(base, bounds, run.world.size)


def _is_mask(run: Run, node: ast.expr) -> bool:
    """Whether an index is a comparison's result."""
    if isinstance(node, ast.UnaryOp):
        return _is_mask(run, node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
        return _is_mask(run, node.left)
    if isinstance(node, ast.Name):
        return any(
            _is_mask(run, item)
            for item in run.module.flow.assigned_values(node)
            if not isinstance(item, ast.Name)
        )
    return isinstance(node, ast.Compare)
