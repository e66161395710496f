"""Values that keep hold of the module they were made in."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.replicated_class import ReplicatedClass


def table_elements(module: Module, value: ast.expr) -> list[ast.expr]:
    """The values in a dictionary, list, tuple or set display or a ``dict(a=...)`` call; else nothing."""
    if isinstance(value, ast.Dict):
        return value.values
    if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
        return value.elts
    if isinstance(value, ast.Call) and module.qualified_name(value.func) == "builtins.dict":
        return [keyword.value for keyword in value.keywords]
    return []


def holds_original(view: ReplicatedClass, value: ast.expr) -> bool:
    """Whether a lambda, a ``functools.partial`` or ``self.method`` works on the module it was made in."""
    if isinstance(value, ast.Lambda):
        return view.is_tied(value.body)
    if (
        isinstance(value, ast.Call)
        and view.module.qualified_name(value.func) == "functools.partial"
    ):
        arguments = [*value.args, *(keyword.value for keyword in value.keywords)]
        return any(_is_part(view, item) or holds_original(view, item) for item in arguments)
    return is_tied_method(view, value)


def is_tied_method(view: ReplicatedClass, value: ast.expr) -> bool:
    """Whether ``value`` is ``self.method`` of a method that works on its own module."""
    method = view.methods.get(view.self_attribute(value) or "")
    if method is None or method.decorator_list:
        return False
    return any(view.is_tied(statement) for statement in method.body)


def is_part(view: ReplicatedClass, value: ast.expr) -> bool:
    """Whether ``value`` is a parameter, buffer or sub-module of this module."""
    return view.self_attribute(value) in view.copied


def _is_part(view: ReplicatedClass, value: ast.expr) -> bool:
    return is_part(view, value) or view.module.class_of_self(value) is view.cls


def alternatives(value: ast.expr) -> Iterator[ast.expr]:
    """``a if c else b`` is either."""
    if isinstance(value, ast.IfExp):
        yield from alternatives(value.body)
        yield from alternatives(value.orelse)
    else:
        yield value
