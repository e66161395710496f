"""Which calls made an object, through variables and the parameters of the file's own functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.semantics.module import Module

_MAXIMUM_DEPTH = 4
_PASSING_METHODS = frozenset(
    {
        "to",
        "cuda",
        "cpu",
        "half",
        "float",
        "bfloat16",
        "double",
        "train",
        "requires_grad_",
        "astype",
    }
)


def makers(module: Module, expression: ast.expr, depth: int = _MAXIMUM_DEPTH) -> Iterator[ast.Call]:
    """The calls that may have made the object an expression stands for: constructions, factory functions.

    ``model.to(device)`` is made by what made ``model``; a parameter by what the file's calls pass for it.
    """
    if depth == 0:
        return
    for value in module.values(expression).known:
        if isinstance(value.node, ast.Call):
            yield from _made_by(module, value.node, depth)
    if isinstance(expression, ast.Name):
        for argument in arguments_for(module, expression):
            yield from makers(module, argument, depth - 1)


def _made_by(module: Module, call: ast.Call, depth: int) -> Iterator[ast.Call]:
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr in _PASSING_METHODS:
        if module.qualified_name(function) is None:
            yield from makers(module, function.value, depth - 1)
            return
    yield call


def arguments_for(module: Module, name: ast.Name) -> Iterator[ast.expr]:
    """What calls in this file pass for a parameter of the enclosing function."""
    function = module.enclosing_function(name)
    if function is None or isinstance(module.parent(function), ast.ClassDef):
        return
    parameters = [item.arg for item in (*function.args.posonlyargs, *function.args.args)]
    if name.id not in parameters:
        return
    position = parameters.index(name.id)
    for call in module.calls_written(function.name):
        if isinstance(call.func, ast.Name):
            argument = module.argument_node(call, name.id, position)
            if argument is not None:
                yield argument
