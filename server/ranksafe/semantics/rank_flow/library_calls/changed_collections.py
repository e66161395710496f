"""Methods that change lists and dictionaries of which every item is known."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.expressions.entries import merged_entries, with_entry
from ranksafe.semantics.rank_flow.library_calls.pure_functions import constant_of
from ranksafe.semantics.rank_flow.values import Known, Many, Unknown, Value, origin_of

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter


def changed_list(
    interpreter: Interpreter, node: ast.Call, word: str, receiver: Many, arguments: list[Value]
) -> Value | None:
    """What ``xs.pop()`` and ``xs.insert(0, x)`` return of a list that is known; None for other methods."""
    if not isinstance(node.func, ast.Attribute) or not interpreter.lists.is_here(node.func.value):
        return None
    items, target = list(receiver.items), node.func.value
    numbers = [item.constant for item in arguments if isinstance(item, Known)]
    own = isinstance(target, (ast.Name, ast.Attribute))
    if word == "count" and len(arguments) == 1:
        whole, wanted = constant_of(receiver), constant_of(arguments[0])
        if whole is None or wanted is None:
            return None
        return Known(whole.constant.count(wanted.constant), origin_of(whole, wanted))
    if word in ("pop", "popleft") and items and len(numbers) == len(arguments) < 2 and own:
        index = numbers[0] if numbers else -1 if word == "pop" else 0
        if not isinstance(index, int) or not -len(items) <= index < len(items):
            return None
        taken = items.pop(index)
        interpreter.assignments.bind(target, replace(receiver, items=tuple(items)))
        return taken
    if word == "insert" and len(arguments) == 2 and own and isinstance(arguments[0], Known):
        items.insert(int(arguments[0].constant), arguments[1])
        interpreter.assignments.bind(target, replace(receiver, items=tuple(items)))
        return Known(None)
    return None


def filled_dictionary(
    interpreter: Interpreter, node: ast.Call, word: str, receiver: Unknown, arguments: list[Value]
) -> Value | None:
    """``stats.update(loss=loss)`` and ``stats.setdefault("loss", loss)`` of a dictionary whose keys are known."""
    if receiver.entries is None or not isinstance(node.func, ast.Attribute):
        return None
    target = node.func.value
    if not isinstance(target, (ast.Name, ast.Attribute)):
        return None
    if word == "setdefault" and arguments and isinstance(arguments[0], Known):
        if arguments[0].constant in dict(receiver.entries) or arguments[0].origin is not None:
            return None
        value = arguments[1] if len(arguments) > 1 else Known(None)
        interpreter.assignments.bind(target, with_entry(receiver, arguments[0], value))
        return value
    if word != "update":
        return None
    after: Unknown | None = receiver
    for value in arguments[: len(node.args)]:
        after = None if after is None else merged_entries(after, value)
    for keyword, value in zip(node.keywords, arguments[len(node.args) :], strict=True):
        if after is not None and keyword.arg is not None:
            after = with_entry(after, Known(keyword.arg), value)
        elif after is not None:
            after = merged_entries(after, value)
    if after is None:
        return None
    interpreter.assignments.bind(target, after)
    return Known(None)
