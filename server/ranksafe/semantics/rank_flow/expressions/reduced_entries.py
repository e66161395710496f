"""Dictionaries whose values a loop or a function reduces over the ranks: what they hold afterwards is not known."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.traces import Item, events_in
from ranksafe.semantics.rank_flow.values import NOTHING_KNOWN, Sameness, Unknown, Value

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

_VIEWS = frozenset({"items", "values", "keys"})


def forget_looped(interpreter: Interpreter, node: ast.For, items: list[Item]) -> None:
    """``for value in stats.values(): dist.all_reduce(value)``; ``items``: the trace of the loop."""
    if next(events_in(items), None) is None:
        return
    viewed = {
        id(item.func.value)
        for item in ast.walk(node.iter)
        if isinstance(item, ast.Call)
        and isinstance(item.func, ast.Attribute)
        and item.func.attr in _VIEWS
    }
    for item in ast.walk(node.iter):
        if isinstance(item, ast.Name):
            _forget(interpreter, item, certainly=id(item) in viewed)


def forget_given(interpreter: Interpreter, node: ast.Call, items: list[Item]) -> None:
    """``reduce_all(stats)``; ``items``: the trace of the call."""
    if next(events_in(items), None) is None:
        return
    for given in (*node.args, *(item.value for item in node.keywords)):
        if isinstance(given, ast.Name):
            _forget(interpreter, given, certainly=False)


def forget_entry(interpreter: Interpreter, target: ast.Subscript, value: Value) -> None:
    """``dist.all_reduce(stats["loss"])``, after which the entry is `value`."""
    if not isinstance(target.value, ast.Name):
        return
    held = interpreter.expressions.variable(target.value.id)
    if not isinstance(held, Unknown) or held.sameness is not Sameness.DATA:
        return
    if held.entries is not None and isinstance(target.slice, ast.Constant):
        interpreter.assignments.bind(target, value)
    else:
        interpreter.assignments.bind(target.value, NOTHING_KNOWN)


def _forget(interpreter: Interpreter, name: ast.Name, *, certainly: bool) -> None:
    held = interpreter.expressions.variable(name.id)
    if not isinstance(held, Unknown) or held.sameness is not Sameness.DATA:
        return
    if certainly or held.entries is not None:
        interpreter.assignments.bind(name, NOTHING_KNOWN)
