"""Where a variable, a parameter or an attribute is read after it got a value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.trails.functions import class_of
from ranksafe_rules._shared.trails.holder import Function


def reads_of_name(module: Module, target: ast.Name) -> Iterator[ast.expr]:
    """Reads of a variable at which this assignment may still hold."""
    scope, bindings = module.bindings(target)
    if scope is None:
        return
    for use in module.loads_of_same_name(target):
        if any(item is target for item in module.flow.reaching_bindings(use, scope, bindings)):
            yield use


def reads_of_parameter(
    module: Module, function: Function, parameter: ast.arg
) -> Iterator[ast.expr]:
    """Reads of a parameter where it was not given another value before."""
    for node in module.nodes(ast.Name, function):
        if not isinstance(node, ast.Name) or node.id != parameter.arg:
            continue
        if not isinstance(node.ctx, ast.Load):
            continue
        scope, bindings = module.bindings(node)
        if scope is not None and any(
            item is parameter for item in module.flow.reaching_bindings(node, scope, bindings)
        ):
            yield node


def reads_of_attribute(module: Module, target: ast.Attribute) -> Iterator[tuple[Module, ast.expr]]:
    """Reads of ``self.x`` in the class, its subclasses and through instances, also in the files that import this one;
    for another object (``args.x``), reads of ``x`` of the same variable. With their file."""
    cls = module.class_of_self(target.value)
    if cls is not None:
        yield from reads_of_property(module, cls, target.attr)
    elif isinstance(target.value, ast.Name):
        for use in module.loads_of_same_name(target.value):
            parent = module.parent(use)
            if isinstance(parent, ast.Attribute) and parent.attr == target.attr:
                if isinstance(parent.ctx, ast.Load):
                    yield module, parent


def reads_of_property(
    module: Module, cls: ast.ClassDef, name: str
) -> Iterator[tuple[Module, ast.expr]]:
    """Reads of ``self.name`` and ``instance.name``, also in the files that import this one, with their file."""
    for read in module.attribute_loads(cls, name):
        yield module, read
    owner = module.class_name(cls)
    for user in (module, *module.users_saying(name)):
        for node in user.nodes(ast.Attribute):
            if not isinstance(node, ast.Attribute) or node.attr != name:
                continue
            if not isinstance(node.ctx, ast.Load) or user.class_of_self(node.value) is cls:
                continue
            if user.is_subclass(class_of(user, node.value), owner):
                user.read_unit_of(node)
                yield user, node
