"""How the code around a call can ask whether it runs on rank 0."""

from __future__ import annotations

import ast
from enum import Enum
from typing import Final

from ranksafe.semantics.module import Module

_ACCELERATOR: Final = "accelerate.Accelerator"
_SPAWNS: Final = ("spawn", "start_processes", "Process", "notebook_launcher")


class Asking(Enum):
    """Ways to ask."""

    ACCELERATOR = "accelerator"
    GROUP = "group"
    """``not dist.is_initialized() or dist.get_rank() == 0``"""
    ENVIRONMENT = "environment"
    """``int(os.environ.get("RANK", "0")) == 0``, before there is a process group."""


def way_to_ask(module: Module, call: ast.Call) -> Asking:
    """The one that is right where ``call`` stands."""
    if accelerator_of(module, call) is not None:
        return Asking.ACCELERATOR
    return Asking.ENVIRONMENT if _comes_too_early(module, call) else Asking.GROUP


def names_rank_zero(module: Module, call: ast.Call) -> bool:
    """Whether there is a way: workers that the file starts itself have no RANK before there is a group."""
    if way_to_ask(module, call) is not Asking.ENVIRONMENT:
        return True
    return not any(module.calls_written(name) for name in _SPAWNS)


def accelerator_of(module: Module, call: ast.Call) -> str | None:
    """How the function around ``call`` (or the file, outside of functions) names its Accelerator."""
    function = module.enclosing_function(call)
    around = module.tree if function is None else function
    first: list[ast.AST] = module.memoized(
        "first accelerators", around, 0, lambda _node, _depth: _first_accelerators(module, function)
    )
    before = (node for node in first if module.order_of(node) < module.order_of(call))
    found = next(before, None)
    return None if found is None else module.text_of(found)


def _first_accelerators(module: Module, function: ast.AST | None) -> list[ast.AST]:
    """The first name, and the first attribute, that is an Accelerator in a function, or in the file outside of them."""
    found: list[ast.AST] = []
    for kind in (ast.Name, ast.Attribute):
        for node in module.nodes(kind, inside=function):
            assert isinstance(node, (ast.Name, ast.Attribute))
            if module.enclosing_function(node) is function and isinstance(
                node.ctx, (ast.Load, ast.Store)
            ):
                if module.type_of(node) == _ACCELERATOR or _is_assigned_accelerator(module, node):
                    found.append(node)
                    break
    return found


def _is_assigned_accelerator(module: Module, node: ast.Name | ast.Attribute) -> bool:
    parent = module.parent(node)
    return isinstance(parent, ast.Assign) and module.type_of(parent.value) == _ACCELERATOR


def _comes_too_early(module: Module, call: ast.Call) -> bool:
    """Whether the function makes the process group, and only after ``call``; or nobody in the file makes one."""
    made = module.calls_written("init_process_group")
    function = module.enclosing_function(call)
    here = [item for item in made if module.enclosing_function(item) is function]
    if here:
        return all(module.order_of(item) > module.order_of(call) for item in here)
    return not made
