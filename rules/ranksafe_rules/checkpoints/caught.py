"""Whether an error of a call is caught."""

from __future__ import annotations

import ast
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.every_rank import callers
from ranksafe_rules._shared.rank_words import identifiers

_MAXIMUM_DEPTH: Final = 4


def is_caught(
    module: Module, node: ast.AST, errors: frozenset[str], depth: int = _MAXIMUM_DEPTH
) -> bool:
    """Whether one of ``errors`` is caught, by ``try`` or ``contextlib.suppress``, around ``node`` or around all calls
    of its function."""
    if _is_caught_here(module, node, errors):
        return True
    function = module.enclosing_function(node)
    if function is None or depth == 0:
        return False
    found = list(callers(module, function, certain=True))
    return bool(found) and all(is_caught(module, call, errors, depth - 1) for call in found)


def _is_caught_here(module: Module, node: ast.AST, errors: frozenset[str]) -> bool:
    child, parent = node, module.parent(node)
    while parent is not None and not isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if isinstance(parent, ast.Try) and any(child is item for item in parent.body):
            if any(_catches(handler, errors) for handler in parent.handlers):
                return True
        if isinstance(parent, ast.With):
            words = {word for item in parent.items for word in identifiers(item.context_expr)}
            if "suppress" in words:
                return True
        child, parent = parent, module.parent(parent)
    return False


def _catches(handler: ast.ExceptHandler, errors: frozenset[str]) -> bool:
    if handler.type is None:
        return True
    return any(word in errors for word in identifiers(handler.type))
