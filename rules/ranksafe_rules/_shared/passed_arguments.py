"""What calls pass for the parameters of a file's own functions and methods: those in the file, and those elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.semantics.module import Module
from ranksafe.semantics.structure import Function

from ranksafe_rules._shared.trails.functions import callers_elsewhere


def passed_for(module: Module, function: ast.AST | None, parameter: str) -> Iterator[ast.expr]:
    """The arguments for a parameter: of a function by its calls, of a method by ``self.method(...)`` and by calls on
    objects that are known to be of its class, of ``__init__`` by the constructions of the class."""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    position = position_of(module, function, parameter)
    cls = module.parent(function)
    if not isinstance(cls, ast.ClassDef):
        for call in module.calls_written(function.name):
            if isinstance(call.func, ast.Name) and module.function_called(call) is function:
                yield from _given(module, call, parameter, position)
        return
    if module.self_name(function) in (None, parameter):
        return
    if function.name == "__init__":
        calls = module.constructions(cls)
    else:
        calls = [
            call
            for call in module.calls_written(function.name)
            if isinstance(call.func, ast.Attribute) and _is_of(module, call.func.value, cls)
        ]
    for call in calls:
        yield from _given(module, call, parameter, position)


def position_of(module: Module, function: Function, parameter: str) -> int | None:
    """At which position calls pass a parameter, ``self`` not counted; None where they can by its name alone, and for
    ``self``."""
    names = [item.arg for item in (*function.args.posonlyargs, *function.args.args)]
    if module.self_name(function) is not None:
        del names[:1]
    return names.index(parameter) if parameter in names else None


def passed_elsewhere(
    module: Module, function: Function, parameter: str
) -> Iterator[tuple[Module, ast.expr]]:
    """The arguments for a parameter of a function, not a method, in the files that import this one, each with its
    file."""
    position = position_of(module, function, parameter)
    for user, call in callers_elsewhere(module, function):
        given = user.argument_node(call, parameter, position)
        if given is not None:
            yield user, given


def _is_of(module: Module, receiver: ast.expr, cls: ast.ClassDef) -> bool:
    if module.class_of_self(receiver) is cls:
        return True
    return module.type_of(receiver) == module.class_name(cls)


def _given(
    module: Module, call: ast.Call, parameter: str, position: int | None
) -> Iterator[ast.expr]:
    argument = module.argument_node(call, parameter, position)
    if argument is not None:
        yield argument
