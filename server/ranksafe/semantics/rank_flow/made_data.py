"""Small functions that are worth following for the data that they make or cut: how much of it each rank has."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.library_calls.filled_lists import appended_to
from ranksafe.semantics.rank_flow.values import Thing, Unknown, Value
from ranksafe.semantics.walking import FUNCTIONS

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.run import Run

_DATA_SETS = "torch.utils.data."


def concerns_data(function: Thing, values: list[Value]) -> bool:
    """Whether a function cuts a tensor whose size is known, or hands out a data set or a list of some size."""
    return any(map(_is_sized, values)) or _makes_data_set(function) or _counts_out(function)


def _is_sized(value: Value) -> bool:
    return isinstance(value, Unknown) and isinstance(value.shape, tuple) and bool(value.shape)


def _makes_data_set(function: Thing) -> bool:
    body = getattr(function.node, "body", None)
    last = body[-1] if isinstance(body, list) and body else body
    made = last.value if isinstance(last, ast.Return) else last
    if not isinstance(made, ast.Call) or function.module is None:
        return False
    return (function.module.qualified_name(made.func) or "").startswith(_DATA_SETS)


def _counts_out(function: Thing) -> bool:
    """``xs = []``, ``for _ in range(count): ... xs.append(x)``, ``return xs``."""
    body = getattr(function.node, "body", None)
    last = body[-1] if isinstance(body, list) and body else None
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Name):
        return False
    return any(
        isinstance(loop, ast.For)
        and isinstance(loop.iter, ast.Call)
        and isinstance(loop.iter.func, ast.Name)
        and loop.iter.func.id == "range"
        and any(appended_to(item) == last.value.id for item in loop.body)
        for loop in body or ()
    )


def is_held(run: Run, owner: Thing, call: ast.AST, function: Thing) -> bool:
    """Whether a call runs a function that an attribute of an object holds: ``self.batch(xs)`` is not given ``self``."""
    called = call.func if isinstance(call, ast.Call) else None
    if not isinstance(called, ast.Attribute) or run.attribute(owner, called.attr) is not function:
        return False
    if isinstance(function.node, ast.Lambda):
        return True
    if not isinstance(function.node, FUNCTIONS) or function.module is None:
        return False
    return not isinstance(function.module.parent(function.node), ast.ClassDef)
