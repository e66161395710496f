"""Whether a wrapper can simply be left out."""

from __future__ import annotations

import ast

from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed


def can_be_left_out(module: Module, wrap: ast.Call) -> bool:
    """Whether the wrapper is kept under a name of which nobody asks for ``.module``."""
    statement = module.parent(wrap)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target = statement.targets[0]
    if not isinstance(target, (ast.Name, ast.Attribute)):
        return False
    name = unparsed(target).rpartition(".")[2]
    return not any(
        isinstance(node, ast.Attribute)
        and node.attr == "module"
        and unparsed(node.value).rpartition(".")[2] == name
        for node in module.nodes(ast.Attribute)
    )
