"""Whether a callable is tied to one instance."""

from __future__ import annotations

import ast

from ranksafe.semantics.module import Module

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_instance(module: Module, owner: ast.expr) -> bool:
    """Whether ``owner`` in ``owner.forward = ...`` is an object: patching a class is right."""
    if isinstance(owner, ast.Call) or module.qualified_name(owner) is not None:
        return False
    if isinstance(owner, ast.Attribute) and owner.attr == "__class__":
        return False
    return not (isinstance(owner, ast.Name) and owner.id == "cls")


def root_name(module: Module, owner: ast.expr) -> str | None:
    """The variable an attribute chain starts from; for a loop's variable, that of what is walked through."""
    node: ast.AST = owner
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    if not isinstance(node, ast.Name):
        return None
    around = module.parent(node)
    while around is not None:
        if isinstance(around, ast.For) and _binds(around.target, node.id):
            return root_name(module, _walked_through(around.iter))
        around = module.parent(around)
    return node.id


def _binds(target: ast.expr, name: str) -> bool:
    return any(isinstance(item, ast.Name) and item.id == name for item in ast.walk(target))


def _walked_through(iterated: ast.expr) -> ast.expr:
    """``enumerate(model.layers)`` walks through ``model.layers``."""
    while isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.args:
        iterated = iterated.args[0]
    return iterated


def is_bound_to(module: Module, value: ast.expr, target: ast.Attribute) -> bool:
    """Whether the new forward keeps hold of the instance: bound with MethodType or ``__get__``, made from the
    instance or its old forward, or a function that uses one of them."""
    if isinstance(value, ast.Call):
        if module.qualified_name(value.func) == "types.MethodType":
            return True
        if isinstance(value.func, ast.Attribute) and value.func.attr == "__get__":
            return True
        arguments = [*value.args, *(keyword.value for keyword in value.keywords)]
        return any(_is_instance_or_forward(module, item, target) for item in arguments)
    if isinstance(value, ast.Lambda):
        return _uses_instance(module, value.body, target)
    if isinstance(value, ast.Attribute):
        return _is_own_method(module, value, target)
    if isinstance(value, ast.Name):
        function = _function_named(module, value)
        return function is not None and _is_used_in(module, function, target)
    return False


def _is_instance_or_forward(module: Module, node: ast.expr, target: ast.Attribute) -> bool:
    owner = module.text_of(target.value)
    if module.text_of(node) in (owner, f"{owner}.forward"):
        return True
    if not isinstance(node, ast.Name):
        return False
    return any(
        module.text_of(value) == f"{owner}.forward" for value in module.flow.assigned_values(node)
    )


def _uses_instance(module: Module, code: ast.AST, target: ast.Attribute) -> bool:
    owner = module.text_of(target.value)
    expressions = [
        node
        for kind in (ast.Name, ast.Attribute)
        for node in module.nodes(kind, inside=code)
        if isinstance(node, ast.expr)
    ]
    if isinstance(code, ast.expr):
        expressions.append(code)
    return any(
        module.text_of(node) == owner or _is_instance_or_forward(module, node, target)
        for node in expressions
    )


def _is_used_in(module: Module, function: ast.AST, target: ast.Attribute) -> bool:
    """Whether a function reads the variable of the instance, or one that holds its old forward."""
    root: ast.AST = target.value
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    if not isinstance(root, ast.Name):
        return False
    names = [root]
    for load in module.loads_of_same_name(root):
        attribute = module.parent(load)
        statement = module.parent(attribute) if attribute is not None else None
        if (
            isinstance(attribute, ast.Attribute)
            and attribute.attr == "forward"
            and isinstance(statement, ast.Assign)
        ):
            names += [item for item in statement.targets if isinstance(item, ast.Name)]
    return any(
        module.is_inside(load, function)
        for name in names
        for load in module.loads_of_same_name(name)
    )


def _is_own_method(module: Module, value: ast.Attribute, target: ast.Attribute) -> bool:
    """``self.forward = self.forward_train``"""
    cls = module.class_of_self(value.value)
    same = cls is not None and module.class_of_self(target.value) is cls
    return same and cls is not None and module.has_method(cls, value.attr)


def _function_named(
    module: Module, name: ast.Name
) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    _, bindings = module.names.bindings(name)
    functions = [item for item in bindings if isinstance(item, _FUNCTIONS)]
    return functions[0] if len(functions) == len(bindings) == 1 else None
