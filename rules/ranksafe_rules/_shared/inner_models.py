"""The model inside a DistributedDataParallel wrapper, and the wrapper it was taken out of."""

from __future__ import annotations

import ast
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.passed_arguments import passed_for
from ranksafe_rules._shared.wrapped_by_callers import wraps_anywhere
from ranksafe_rules._shared.wrapped_models import Wrapper, unwraps

_MAXIMUM_DEPTH: Final = 4


def wrapper_of(module: Module, inner: ast.expr, depth: int = _MAXIMUM_DEPTH) -> ast.expr | None:
    """The wrapper around what an expression stands for: ``model`` for ``model.module``, ``unwrap_model(model)``."""
    if depth == 0:
        return None
    if isinstance(inner, ast.Attribute):
        return _of_attribute(module, inner, depth)
    if isinstance(inner, ast.Call):
        if unwraps(inner):
            return _distributed(module, inner.args[0]) if inner.args else None
        function = module.function_called(inner)
        returned = [] if function is None else module.returns_of(function)
        return _first(module, [item.value for item in returned if item.value], depth)
    if isinstance(inner, ast.IfExp):
        return _first(module, [inner.body, inner.orelse], depth)
    if isinstance(inner, ast.Name):
        return _of_name(module, inner, depth)
    return None


def _of_attribute(module: Module, inner: ast.Attribute, depth: int) -> ast.expr | None:
    if inner.attr == "module":
        found = _distributed(module, inner.value)
        if found is not None:
            return found
    cls = module.class_of_self(inner.value)
    if cls is None:
        return None
    stores = module.attribute_stores(cls, inner.attr)
    values = [module.assigned_to_attribute(store) for store in stores]
    return _first(module, [value for value in values if value is not None], depth)


def _of_name(module: Module, name: ast.Name, depth: int) -> ast.expr | None:
    scope, bindings = module.bindings(name)
    if scope is None:
        return None
    for binding in module.flow.reaching_bindings(name, scope, bindings):
        found = None
        if isinstance(binding, ast.Name):
            assigned = module.assigned_value(binding)
            found = None if assigned is None else wrapper_of(module, assigned, depth - 1)
        elif isinstance(binding, ast.arg):
            passed = list(passed_for(module, module.parent(binding), name.id))
            found = _first(module, passed, depth)
        if found is not None:
            return found
    return None


def _first(module: Module, expressions: list[ast.expr], depth: int) -> ast.expr | None:
    found = (wrapper_of(module, item, depth - 1) for item in expressions)
    return next((item for item in found if item is not None), None)


def _distributed(module: Module, wrapper: ast.expr) -> ast.expr | None:
    if not isinstance(wrapper, (ast.Name, ast.Attribute)):
        return None
    wraps = wraps_anywhere(module, wrapper)
    if any(wrapped.how is not Wrapper.DATA_PARALLEL for wrapped in wraps.known):
        return wrapper
    return None
