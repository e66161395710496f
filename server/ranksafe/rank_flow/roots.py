"""Which function, or the file itself, is around a line."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.rank_flow.values import Object
from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import FUNCTIONS


def roots_around(module: Module, line: int) -> Iterator[tuple[Object, ast.ClassDef | None]]:
    """The function or method around a 0-based line, then the functions inside it, inwards, each with its class; the
    file itself where there is none."""
    function: ast.AST | None = None
    for unit in module.all_units():
        for node in unit.nodes:
            if isinstance(node, FUNCTIONS) and _spans(module, node, line):
                function = node
                yield (
                    Object("function", node=node, module=module),
                    None if unit.owner is None else unit.owner.node,
                )
    if function is None:
        yield Object("module", node=module.tree, module=module), None
        return
    for inner in ast.walk(function):
        if inner is not function and isinstance(inner, FUNCTIONS) and _spans(module, inner, line):
            yield Object("function", node=inner, module=module), None


def _spans(module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef, line: int) -> bool:
    """Whether a line lies in a function; the range of a definition is that of its name."""
    moved = module.range_of(node).start.line - (node.lineno - 1)
    first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
    return first - 1 + moved <= line <= (node.end_lineno or node.lineno) - 1 + moved
