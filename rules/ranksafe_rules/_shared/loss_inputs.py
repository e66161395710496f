"""The calls whose results flow into an expression with their gradients: into a loss, mostly."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import children, unparsed

_CUTTING: Final = frozenset({"detach", "detach_", "item", "tolist", "cpu_numpy", "numpy", "argmax"})
"""Methods whose results carry no gradients."""
_NO_GRADIENTS: Final = frozenset({"no_grad", "inference_mode"})
_MAXIMUM_DEPTH: Final = 8


def loss_of(backward: ast.Call) -> list[ast.expr]:
    """``loss`` of ``loss.backward()``, ``scaler.scale(loss).backward()`` and ``accelerator.backward(loss)``."""
    function = backward.func
    receiver = [function.value] if isinstance(function, ast.Attribute) else []
    return [*backward.args, *receiver]


def calls_feeding(module: Module, expression: ast.expr) -> list[ast.Call]:
    """Calls that an expression is computed from, through variables and the returns of the file's own functions, the
    nearest first; those in ``torch.no_grad()`` and behind ``.detach()`` are left out."""
    found: list[ast.Call] = []
    _collect(module, expression, found, set(), _MAXIMUM_DEPTH)
    return found


def _collect(
    module: Module, node: ast.expr, found: list[ast.Call], seen: set[int], depth: int
) -> None:
    if depth == 0 or id(node) in seen or len(seen) > 400:
        return
    seen.add(id(node))
    for part in _parts(node):
        if isinstance(part, ast.Call):
            if without_gradients(module, part):
                continue
            found.append(part)
            function = module.function_called(part)
            for item in () if function is None else module.returns_of(function):
                if item.value is not None:
                    _collect(module, item.value, found, seen, depth - 1)
        elif isinstance(part, ast.Name):
            for value in _assigned(module, part):
                _collect(module, value, found, seen, depth - 1)


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is inside of it, without what is cut off from the gradients."""
    if isinstance(node, (ast.Lambda, ast.FunctionDef)):
        return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _CUTTING:
            return
    yield node
    for child in children(node):
        yield from _parts(child)


def _assigned(module: Module, name: ast.Name) -> Iterator[ast.expr]:
    scope, bindings = module.bindings(name)
    if scope is None:
        return
    for binding in module.flow.reaching_bindings(name, scope, bindings):
        if not isinstance(binding, ast.Name):
            continue
        statement: ast.AST | None = module.parent(binding)
        while isinstance(statement, (ast.Tuple, ast.List, ast.Starred)):
            statement = module.parent(statement)
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
            if statement.value is not None:
                yield statement.value


def without_gradients(module: Module, node: ast.AST) -> bool:
    """Whether a node stands in ``with torch.no_grad()`` or in a function that is decorated with it."""
    current = module.parent(node)
    while current is not None:
        if isinstance(current, (ast.With, ast.AsyncWith)):
            if any(_turns_off(item.context_expr) for item in current.items):
                return True
        if isinstance(current, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return any(_turns_off(item) for item in current.decorator_list)
        current = module.parent(current)
    return False


def _turns_off(expression: ast.expr) -> bool:
    if isinstance(expression, ast.Call):
        if (
            isinstance(expression.func, ast.Attribute)
            and expression.func.attr == "set_grad_enabled"
        ):
            return unparsed(expression).endswith("(False)")
        expression = expression.func
    last = expression.attr if isinstance(expression, ast.Attribute) else ""
    return (expression.id if isinstance(expression, ast.Name) else last) in _NO_GRADIENTS
