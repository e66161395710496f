"""Conditions on how a program was set up, which stay as they are while it trains."""

from __future__ import annotations

import ast
import re
from typing import Final

from ranksafe.semantics.guards import Guard
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.rank_words import asks_for_the_rank, identifiers

_PROGRESS: Final = re.compile(r"epoch|step|iter", re.IGNORECASE)


def asks_for_setting(module: Module, guard: Guard) -> bool:
    """Whether a condition, or a part of it that has to hold, asks for nothing but what its function was given, or has
    from outside, and that tells no ranks apart and counts nothing."""
    test, joined = guard.test, ast.And if guard.positive else ast.Or
    parts = [test]
    if isinstance(test, ast.BoolOp) and isinstance(test.op, joined):
        parts = test.values
    return any(_is_setting(module, part) for part in parts)


def _is_setting(module: Module, part: ast.expr) -> bool:
    if any(map(_PROGRESS.search, identifiers(part))) or asks_for_the_rank(module, part):
        return False
    names = [node for node in ast.walk(part) if isinstance(node, ast.Name)]
    return bool(names) and all(_is_given(module, name) for name in names)


def _is_given(module: Module, name: ast.Name) -> bool:
    function = module.enclosing_function(name)
    scope, bindings = module.bindings(name)
    if function is None or scope is None or scope.node is not function:
        return True
    # What an object keeps of its own may be the state of the training.
    return name.id != module.self_name(function) and all(
        isinstance(item, ast.arg) for item in bindings
    )
