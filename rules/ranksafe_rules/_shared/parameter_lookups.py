"""``next(self.parameters())`` and its like."""

from __future__ import annotations

import ast

from ranksafe_rules._shared.replicated_class import ReplicatedClass

_ITERATORS = frozenset({"parameters", "named_parameters"})


def looked_up_part(view: ReplicatedClass, node: ast.AST) -> tuple[ast.Call, str | None] | None:
    """The call of ``parameters()`` from whose iterator ``node`` takes one item, and the sub-module it is asked of
    (None: the module itself). None where ``node`` does nothing like that, or has a default to fall back on."""
    if isinstance(node, ast.Call) and view.module.qualified_name(node.func) == "builtins.next":
        return _iterated(view, node.args[0]) if len(node.args) == 1 else None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        is_list = isinstance(node.value, ast.Call) and _is_named(view, node.value, "list", "tuple")
        return _iterated(view, node.value) if is_list and node.slice.value == 0 else None
    return None


def is_parameter_lookup(view: ReplicatedClass, node: ast.AST) -> bool:
    """Whether ``node`` takes one of the module's (or a sub-module's) parameters."""
    return looked_up_part(view, node) is not None


def _iterated(view: ReplicatedClass, node: ast.expr) -> tuple[ast.Call, str | None] | None:
    while (
        isinstance(node, ast.Call)
        and len(node.args) == 1
        and _is_named(view, node, "iter", "list", "tuple")
    ):
        node = node.args[0]
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    if node.func.attr not in _ITERATORS:
        return None
    owner = node.func.value
    if view.module.class_of_self(owner) is view.cls:
        return node, None
    part = view.self_attribute(owner)
    return None if part is None else (node, part)


def _is_named(view: ReplicatedClass, call: ast.Call, *names: str) -> bool:
    return view.module.qualified_name(call.func) in {f"builtins.{name}" for name in names}
