"""Chains of methods that give the module itself back: ``model = build().half().to(device)``."""

from __future__ import annotations

import ast
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed

SAME_OBJECT: Final = frozenset(
    {"to", "cuda", "cpu", "half", "float", "bfloat16", "double", "train", "eval", "requires_grad_"}
)
"""Methods of nn.Module that return it (torch 2.13.0 `nn/modules/module.py`)."""


def object_of(node: ast.expr) -> ast.expr:
    """``model`` of ``model.half().to(device)``."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr not in SAME_OBJECT:
            break
        node = node.func.value
    return node


def names_of_result(module: Module, call: ast.Call) -> list[str]:
    """The names that the result of a call, or of a chain that begins with it, is assigned to, as written."""
    node: ast.AST = call
    parent = module.parent(node)
    while isinstance(parent, ast.Attribute) and parent.attr in SAME_OBJECT:
        outer = module.parent(parent)
        if not isinstance(outer, ast.Call):
            return []
        node, parent = outer, module.parent(outer)
    return [unparsed(item) for item in parent.targets] if isinstance(parent, ast.Assign) else []
