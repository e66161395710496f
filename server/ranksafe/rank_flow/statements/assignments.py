"""Assignments: what names, attributes and items are bound to."""

from __future__ import annotations

import ast

from ranksafe.rank_flow.binding import bind
from ranksafe.rank_flow.expressions.operators import computed
from ranksafe.rank_flow.expressions.slices import pads
from ranksafe.rank_flow.library_calls.growing_lists import add_items
from ranksafe.rank_flow.library_objects import library_annotated
from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.values import (
    NOTHING_KNOWN,
    Abstract,
    Constant,
    Sequence,
    Share,
    Value,
    combined,
    listed,
)


def assign(run: Run, node: ast.Assign) -> bool:
    """``a = b = x``."""
    value = run.value(node.value)
    for target in node.targets:
        bind(run, target, value)
    return True


def annotated_assignment(run: Run, node: ast.AnnAssign) -> bool:
    """``a: int = x``."""
    if node.value is not None:
        value = run.value(node.value)
        if isinstance(value, Abstract):
            value = library_annotated(run, node) or value
        bind(run, node.target, value)
    return True


def augmented_assignment(run: Run, node: ast.AugAssign) -> bool:
    """``a += x``."""
    target = node.target
    if isinstance(target, ast.Name):
        load: ast.expr = ast.Name(target.id, ast.Load())
        before = run.variable(target.id)
    else:
        load, before = target, None
    if before is None:
        before = run.value(load) if not isinstance(target, ast.Name) else NOTHING_KNOWN
    added = run.value(node.value)
    if isinstance(node.op, ast.Add) and _fills(run, target, before, added):
        return True
    if isinstance(before, Constant) and isinstance(added, Constant):
        bind(run, target, computed(node.op, before, added))
    elif (
        isinstance(before, Sequence)
        and isinstance(added, Sequence)
        and isinstance(node.op, ast.Add)
    ):
        bind(run, target, listed(before.items + added.items))
    elif isinstance(node.op, ast.Add) and pads(node.value):
        bind(run, target, combined(before, added).changed(share=Share.EVEN))
    else:
        bind(run, target, combined(before, added))
    return True


def _fills(run: Run, target: ast.expr, before: Value, added: Value) -> bool:
    """``xs += ys`` for lists."""
    lists = isinstance(before, Sequence) or (
        isinstance(added, Sequence) and isinstance(before, Abstract) and bool(run.around)
    )
    return lists and add_items(run, target, before, added, several=True)
