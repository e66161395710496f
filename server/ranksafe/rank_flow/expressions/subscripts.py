"""Subscripts: items, slices and masks, and the shares of data that they make."""

from __future__ import annotations

import ast

from ranksafe.rank_flow.calls import environment_variable
from ranksafe.rank_flow.expressions.groups import group_at
from ranksafe.rank_flow.expressions.slices import sliced
from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.values import (
    Abstract,
    Constant,
    Sequence,
    Value,
    Varies,
    combined,
    origin_of,
)


def subscript(run: Run, node: ast.Subscript) -> Value:
    """``xs[i]``, ``xs[a:b]``."""
    if run.module.qualified_name(node.value) == "os.environ":
        return environment_variable(run, node.slice, node)
    base = run.value(node.value)
    run.none_used(base, node.value)
    if isinstance(node.slice, ast.Slice):
        return _slice(run, base, node.slice)
    index = run.value(node.slice)
    if (
        isinstance(base, Sequence)
        and isinstance(index, Constant)
        and isinstance(index.constant, int)
    ):
        if -len(base.items) <= index.constant < len(base.items):
            item = base.items[index.constant]
            if index.origin is not None and isinstance(item, Constant):
                return Constant(item.constant, index.origin)
            return item
    group = group_at(base, index) if isinstance(base, Abstract) else None
    if group is not None:
        return group
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
