"""Conditions inside expressions: what is evaluated depends on what came before."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ranksafe.semantics.rank_flow.expressions.amounts import chosen
from ranksafe.semantics.rank_flow.joined_values import joined
from ranksafe.semantics.rank_flow.traces import Branch, Decision, matters
from ranksafe.semantics.rank_flow.values import (
    Known,
    Sameness,
    Share,
    Unknown,
    Value,
    combined,
    origin_of,
    truth_of,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter


class Conditions:
    """Evaluates ``and``, ``or`` and conditional expressions."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def bool_operation(self, node: ast.BoolOp) -> Value:
        """``a and b``, ``a or b``: the rest is not evaluated once the result is certain."""
        stops_at = isinstance(node.op, ast.Or)
        decided: list[Value] = []
        undecided: list[Value] = []
        for operand in node.values:
            value = (
                self._guarded(operand, node, undecided)
                if undecided
                else self._interpreter.expressions.value(operand)
            )
            truth = truth_of(value)
            if truth is None:
                undecided.append(value)
            elif truth is stops_at:
                origin = origin_of(value, *decided)
                if isinstance(value, Known) and not undecided:
                    return Known(value.constant, origin)
                return Known(stops_at, origin)
            else:
                decided.append(value)
        if undecided:
            parted = origin_of(*decided)
            if parted is not None and parted.sameness.varies:
                self._run.apart[id(node)] = parted
            return combined(*undecided)
        last = decided[-1]
        return Known(last.constant, origin_of(*decided)) if isinstance(last, Known) else last

    def _guarded(self, operand: ast.expr, node: ast.BoolOp, before: list[Value]) -> Value:
        """An operand that is evaluated only if the ones before let it."""
        outer, self._run.items = self._run.items, []
        self._run.inside.perhaps += 1
        value = self._interpreter.expressions.value(operand)
        self._run.inside.perhaps -= 1
        items, self._run.items = self._run.items, outer
        if matters(items):
            outer.append(Branch(self._run.place(node), combined(*before), items, []))
        return value

    def conditional(self, node: ast.IfExp) -> Value:
        """``a if test else b``."""
        test = self._interpreter.expressions.value(node.test)
        truth = truth_of(test)
        if truth is not None:
            if test.sameness.varies:
                self._run.items.append(Decision(self._run.place(node), truth, test))
            value = self._interpreter.expressions.value(node.body if truth else node.orelse)
            if test.sameness.varies and isinstance(value, Known) and value.origin is None:
                # For None: the other ranks have the other arm's value.
                other = node if _is_something(node.orelse if truth else node.body) else None
                none = other if value.constant is None else None
                skipped = self._interpreter.expressions.look(node.orelse if truth else node.body)
                made = Known(value.constant, origin_of(test), instead_of=none)
                return chosen(made, (skipped,))
            nothing = node.orelse if truth else node.body
            if isinstance(nothing, ast.Constant) and nothing.value is None:
                if isinstance(value, Unknown) and value.sameness < Sameness.DATA:
                    return replace(value, there=origin_of(test))
            if test.sameness.varies and isinstance(value, Unknown) and _may_be_bound(value):
                return replace(value, share=Share.UNEVEN)
            return value
        outer = self._run.items
        arms: list[tuple[Value, list[Any]]] = []
        self._run.inside.perhaps += 1
        for arm in (node.body, node.orelse):
            self._run.items = []
            value = self._interpreter.expressions.value(arm)
            arms.append((value, self._run.items))
        self._run.inside.perhaps -= 1
        self._run.items = outer
        if any(matters(items) for _, items in arms):
            outer.append(Branch(self._run.place(node), test, arms[0][1], arms[1][1]))
        return joined(arms[0][0], arms[1][0], test)


def _is_something(node: ast.expr) -> bool:
    """Whether an arm is something other than a constant."""
    return not isinstance(node, ast.Constant)


def _may_be_bound(value: Unknown) -> bool:
    """Whether a value may be the bound of a range: not what comes out of data or tests."""
    return not value.decides and value.sameness is not Sameness.DATA
