"""Whether an error that is predicted is caught."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.every_rank import callers
from ranksafe_rules._shared.rank_words import identifiers

_MAXIMUM_DEPTH: Final = 4


def is_caught(
    module: Module, node: ast.AST, errors: frozenset[str], depth: int = _MAXIMUM_DEPTH
) -> bool:
    """Whether one of ``errors`` is caught, by ``try`` or ``contextlib.suppress``, around ``node`` or around all calls
    of its function; with a ``depth`` of 0, its callers are not asked."""
    if _is_caught_here(module, node, errors):
        return True
    function = module.enclosing_function(node)
    if function is None or depth == 0:
        return False
    found = list(callers(module, function, certain=True))
    return bool(found) and all(is_caught(module, call, errors, depth - 1) for call in found)


def handlers_around(
    module: Module, node: ast.AST, errors: frozenset[str]
) -> Iterator[ast.ExceptHandler]:
    """The handlers around ``node``, in its own function, that catch one of ``errors``, the nearest first."""
    for child, parent in _around(module, node):
        if isinstance(parent, ast.Try) and any(child is item for item in parent.body):
            yield from (handler for handler in parent.handlers if _catches(handler, errors))


def _is_caught_here(module: Module, node: ast.AST, errors: frozenset[str]) -> bool:
    return any(handlers_around(module, node, errors)) or any(
        "suppress" in identifiers(item.context_expr)
        for _, parent in _around(module, node)
        if isinstance(parent, ast.With)
        for item in parent.items
    )


def _around(module: Module, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    child, parent = node, module.parent(node)
    while parent is not None and not isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield child, parent
        child, parent = parent, module.parent(parent)


def _catches(handler: ast.ExceptHandler, errors: frozenset[str]) -> bool:
    if handler.type is None:
        return True
    return any(word in errors for word in identifiers(handler.type))
