"""Conditions on how a program was set up, which stay as they are while it trains."""

from __future__ import annotations

import ast
from typing import Final

from ranksafe.semantics.guards import Guard
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.rank_words import asks_for_the_rank

_MAXIMUM_DEPTH: Final = 2


def asks_for_setting(module: Module, guard: Guard) -> bool:
    """Whether a condition, or a part of it that has to hold, asks for nothing but what its function was given, or has
    from outside, and that tells no ranks apart."""
    test, joined = guard.test, ast.And if guard.positive else ast.Or
    parts = [test]
    if isinstance(test, ast.BoolOp) and isinstance(test.op, joined):
        parts = test.values
    return any(_is_setting(module, part) for part in parts)


def _is_setting(module: Module, part: ast.expr, depth: int = _MAXIMUM_DEPTH) -> bool:
    if asks_for_the_rank(module, part):
        return False
    names = [node for node in ast.walk(part) if isinstance(node, ast.Name)]
    return bool(names) and all(_is_given(module, name, depth) for name in names)


def _is_given(module: Module, name: ast.Name, depth: int) -> bool:
    function = module.enclosing_function(name)
    scope, bindings = module.bindings(name)
    if function is None or scope is None or scope.node is not function:
        return True
    if any(isinstance(item, ast.arg) for item in bindings):
        # What an object keeps of its own may be the state of the training.
        return name.id != module.self_name(function) and len(bindings) == 1
    assigned = module.flow.assigned_values(name)
    return (
        len(assigned) == len(bindings) == 1
        and depth > 0
        and _is_setting(module, assigned[0], depth - 1)
    )
