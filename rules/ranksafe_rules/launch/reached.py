"""Calls that every start of a script comes to."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.every_rank import callers

_MAXIMUM_DEPTH: Final = 6


def is_reached(
    module: Module,
    node: ast.AST,
    is_stopped: Callable[[Module, ast.AST], bool],
    above: frozenset[ast.AST] = frozenset(),
) -> bool:
    """Whether the statements of the file come to ``node``, and nothing on the way, neither around it nor around a call
    of its function, stops them."""
    function = module.enclosing_function(node)
    if len(above) == _MAXIMUM_DEPTH or function in above or is_stopped(module, node):
        return False
    if function is None:
        return module.enclosing_class(node) is None
    return any(
        is_reached(module, call, is_stopped, above | {function})
        for call in callers(module, function, certain=True)
    )
