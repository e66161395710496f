"""Where the work of an asynchronous call goes, and who looks at it again."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal

from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import FUNCTIONS

_ADDS = frozenset({"append", "add", "extend", "appendleft", "clear", "insert", "put", "put_nowait"})
_HOLDS = (
    ast.Tuple, ast.List, ast.Set, ast.Dict, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.Starred,
    ast.DictComp,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Handle:
    """What became of a work object."""

    kind: Literal["dropped", "kept", "elsewhere"]
    """``kept``: in a variable, an attribute or a container; ``elsewhere``: handed on, returned, or used at once."""
    holder: ast.Name | ast.Attribute | None = None
    """The variable or attribute that it, or the container with it, is kept in."""


def handle_of(module: Module, call: ast.expr) -> Handle:
    """Where the value of a call goes."""
    current: ast.AST = call
    parent = module.parent(current)
    while isinstance(parent, _HOLDS) or (
        isinstance(parent, ast.IfExp) and current is not parent.test
    ):
        if isinstance(parent, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            if current is not getattr(parent, "elt", getattr(parent, "value", None)):
                return Handle("elsewhere")
        current, parent = parent, module.parent(parent)
    if isinstance(parent, ast.Expr):
        return Handle("elsewhere" if isinstance(current, ast.GeneratorExp) else "dropped")
    if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        if len(targets) == 1:
            return _kept(targets[0])
    if (
        isinstance(parent, ast.Call)
        and isinstance(parent.func, ast.Attribute)
        and parent.func.attr in _ADDS
        and isinstance(module.parent(parent), ast.Expr)
    ):
        return _kept(parent.func.value)
    return Handle("elsewhere")


def _kept(target: ast.expr) -> Handle:
    if isinstance(target, ast.Subscript):
        target = target.value
    if isinstance(target, (ast.Name, ast.Attribute)):
        return Handle("kept", target)
    return Handle("elsewhere")


def looked_at(module: Module, holder: ast.Name | ast.Attribute) -> list[ast.AST]:
    """Where what is kept is read again: adding to it is no reading."""
    if isinstance(holder, ast.Name):
        loads: list[ast.AST] = list(module.loads_of_same_name(holder))
    else:
        loads = [
            node
            for node in module.nodes(ast.Attribute)
            if isinstance(node, ast.Attribute)
            and node.attr == holder.attr
            and isinstance(node.ctx, ast.Load)
        ]
    return [load for load in loads if not _is_addition(module, load)]


def is_private(module: Module, holder: ast.Name | ast.Attribute) -> bool:
    """Whether all that reads what is kept there stands in the file."""
    if isinstance(holder, ast.Attribute):
        return holder.attr.startswith("_") and module.class_of_self(holder.value) is not None
    scope, bindings = module.names.bindings(holder)
    if scope is None or scope.kind == "class":
        return False
    if scope.kind == "function" and not isinstance(scope.node, FUNCTIONS):
        return False
    return bool(bindings) and all(isinstance(binding, ast.Name) for binding in bindings)


def _is_addition(module: Module, load: ast.AST) -> bool:
    parent = module.parent(load)
    if isinstance(parent, ast.Attribute):
        call = module.parent(parent)
        return (
            parent.attr in _ADDS and call is not None and isinstance(module.parent(call), ast.Expr)
        )
    return isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store)
