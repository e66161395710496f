"""Conditions inside expressions: what is evaluated depends on what came before."""

from __future__ import annotations

import ast
from typing import Any

from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.traces import Branch, Decision, matters
from ranksafe.rank_flow.values import (
    Abstract,
    Constant,
    Share,
    Value,
    Varies,
    combined,
    joined,
    origin_of,
    truth_of,
)


def bool_operation(run: Run, node: ast.BoolOp) -> Value:
    """``a and b``, ``a or b``: the rest is not evaluated once the result is certain."""
    stops_at = isinstance(node.op, ast.Or)
    decided: list[Value] = []
    undecided: list[Value] = []
    for operand in node.values:
        value = _guarded(run, operand, node, undecided) if undecided else run.value(operand)
        truth = truth_of(value)
        if truth is None:
            undecided.append(value)
        elif truth is stops_at:
            origin = origin_of(value, *decided)
            if isinstance(value, Constant) and not undecided:
                return Constant(value.constant, origin)
            return Constant(stops_at, origin)
        else:
            decided.append(value)
    if undecided:
        return combined(*undecided)
    last = decided[-1]
    return Constant(last.constant, origin_of(*decided)) if isinstance(last, Constant) else last


def _guarded(run: Run, operand: ast.expr, node: ast.BoolOp, before: list[Value]) -> Value:
    """An operand that is evaluated only if the ones before let it."""
    outer, run.items = run.items, []
    value = run.value(operand)
    items, run.items = run.items, outer
    if matters(items):
        outer.append(Branch(run.place(node), combined(*before), items, []))
    return value


def conditional(run: Run, node: ast.IfExp) -> Value:
    """``a if test else b``."""
    test = run.value(node.test)
    truth = truth_of(test)
    if truth is not None:
        if test.varies.certain:
            run.items.append(Decision(run.place(node), truth, test))
        value = run.value(node.body if truth else node.orelse)
        if test.varies.certain and isinstance(value, Constant) and value.origin is None:
            # For None: the other ranks have the other arm's value.
            other = (
                node if not isinstance(node.orelse if truth else node.body, ast.Constant) else None
            )
            none = other if value.constant is None else None
            return Constant(value.constant, origin_of(test), instead_of=none)
        if test.varies.certain and isinstance(value, Abstract) and _may_be_bound(value):
            return value.changed(share=Share.UNEVEN)
        return value
    outer = run.items
    arms: list[tuple[Value, list[Any]]] = []
    for arm in (node.body, node.orelse):
        run.items = []
        value = run.value(arm)
        arms.append((value, run.items))
    run.items = outer
    if any(matters(items) for _, items in arms):
        outer.append(Branch(run.place(node), test, arms[0][1], arms[1][1]))
    return joined(arms[0][0], arms[1][0], test)


def _may_be_bound(value: Abstract) -> bool:
    """Whether a value may be the bound of a range: not what comes out of data or tests."""
    return not value.decides and value.varies is not Varies.BY_DATA
