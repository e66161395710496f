"""What an argument certainly is, also where it is a parameter of the helper that makes the object."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ranksafe.semantics.module import Module


def flag(module: Module, written: ast.expr, made: Sequence[ast.AST], depth: int = 4) -> bool | None:
    """Whether an expression is true or false; None when that is not certain.

    ``made``: the calls that lead to the object. Where the expression is a parameter of the function that makes it, the
    calls of that function say what it is.
    """
    if depth == 0:
        return None
    if isinstance(written, ast.UnaryOp) and isinstance(written.op, ast.Not):
        inside = flag(module, written.operand, made, depth - 1)
        return None if inside is None else not inside
    if isinstance(written, ast.Compare) and len(written.ops) == 1:
        return _compared(module, written, made)
    known = _constant(module, written, made)
    return bool(known[0]) if known is not None else None


def _compared(module: Module, test: ast.Compare, made: Sequence[ast.AST]) -> bool | None:
    left = _constant(module, test.left, made)
    right = _constant(module, test.comparators[0], made)
    if left is None or right is None:
        return None
    if isinstance(test.ops[0], (ast.Eq, ast.Is)):
        return bool(left[0] == right[0])
    if isinstance(test.ops[0], (ast.NotEq, ast.IsNot)):
        return bool(left[0] != right[0])
    return None


def _constant(module: Module, node: ast.expr, made: Sequence[ast.AST]) -> tuple[Any] | None:
    """The constant that an expression certainly is."""
    if isinstance(node, ast.Constant):
        return (node.value,)
    passed = _passed(module, node, made) if isinstance(node, ast.Name) else None
    values = module.values(node if passed is None else passed)
    if not values.known or not values.are_constants:
        return None
    constants = {repr(value.constant) for value in values.known}
    return (values.known[0].constant,) if len(constants) == 1 else None


def _passed(module: Module, name: ast.Name, made: Sequence[ast.AST]) -> ast.expr | None:
    """What the call that led to the object passes for a parameter, or the parameter's default."""
    function = module.enclosing_function(name)
    if function is None:
        return None
    arguments = function.args
    positional = [item.arg for item in (*arguments.posonlyargs, *arguments.args)]
    for call in made:
        if isinstance(call, ast.Call) and module.function_called(call) is function:
            skipped = 1 if isinstance(call.func, ast.Attribute) else 0
            position = positional.index(name.id) - skipped if name.id in positional else None
            given = module.argument_node(call, name.id, position)
            return given if given is not None else _default(function, name.id)
    return None


def _default(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> ast.expr | None:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    with_default = positional[len(positional) - len(arguments.defaults) :]
    for item, default in zip(with_default, arguments.defaults, strict=True):
        if item.arg == name:
            return default
    for item, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if item.arg == name:
            return value
    return None
