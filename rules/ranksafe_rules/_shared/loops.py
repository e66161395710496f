"""Loops around a node."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.semantics.module import Module

Loop = ast.For | ast.AsyncFor | ast.While
_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def loops_around(module: Module, node: ast.AST) -> Iterator[Loop]:
    """The loops of the same function whose body holds a node, the innermost first; not the node itself."""
    child, parent = node, module.parent(node)
    while parent is not None and not isinstance(parent, _FUNCTIONS):
        if isinstance(parent, _LOOPS) and any(child is item for item in parent.body):
            yield parent
        child, parent = parent, module.parent(parent)
