"""Where a reduction is held back, seen from the forward that decides on it.

torch 2.13.0 ``nn/parallel/distributed.py``: ``forward`` reads ``require_backward_grad_sync`` and prepares the reducer;
what the flag says in the backward is not read again. `no_sync` is a block in which the flag is False.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.loops import loops_around
from ranksafe_rules._shared.loss_inputs import calls_feeding, loss_of
from ranksafe_rules._shared.wrapped_models import Wrapper, wraps_of
from ranksafe_rules._shared.wrapper_levels import distributed_level

_FLAG: Final = "require_backward_grad_sync"
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_DISTRIBUTED: Final = "torch.nn.parallel.DistributedDataParallel"


class Late(Enum):
    """What came after the forward."""

    BLOCK = "no_sync"
    FLAG = "require_backward_grad_sync"


@dataclass(frozen=True, slots=True)
class SetAfterForward:
    """Something that is to hold back a reduction, and cannot any more."""

    how: Late
    place: ast.expr
    """``model.no_sync`` or ``model.require_backward_grad_sync``."""
    forward: ast.Call


def set_after_forward(
    module: Module, backward: ast.Call, launch: LaunchContext
) -> SetAfterForward | None:
    """What comes too late for a backward, if its loss is of a model in DistributedDataParallel."""
    for loss in loss_of(backward):
        forwards = [
            call
            for call in calls_feeding(module, loss)
            if module.enclosing_function(call) is module.enclosing_function(backward)
            and isinstance(call.func, (ast.Name, ast.Attribute))
        ]
        if any(_is_held_back(module, forward) for forward in forwards):
            continue
        for forward in forwards:
            place, how = _block_around(module, backward, forward), Late.BLOCK
            if place is None:
                place, how = _flag_between(module, forward, backward), Late.FLAG
            if place is not None and _is_distributed(module, forward.func, launch):
                return SetAfterForward(how, place, forward)
    return None


def _is_distributed(module: Module, model: ast.expr, launch: LaunchContext) -> bool:
    return any(
        item.how is Wrapper.DISTRIBUTED
        and isinstance(item.place, ast.Call)
        and module.qualified_name(item.place.func) == _DISTRIBUTED
        and distributed_level(module, launch, item) is not None
        for item in wraps_of(module, model).known
    )


def _is_held_back(module: Module, forward: ast.Call) -> bool:
    """Whether a forward stands in ``no_sync`` of its model: where another arm has one outside, each is for a backward
    of its own."""
    model = module.text_of(forward.func)
    return any(_no_sync_of(module, model, block) for block in _blocks(module, forward))


def _block_around(module: Module, backward: ast.Call, forward: ast.Call) -> ast.expr | None:
    """``model.no_sync`` of a block that holds the backward and has no forward of its own."""
    model = module.text_of(forward.func)
    for block in _blocks(module, backward):
        place = _no_sync_of(module, model, block)
        if place is not None:
            inside = module.nodes(ast.Call, inside=block)
            has_forward = any(
                isinstance(call, ast.Call) and module.text_of(call.func) == model for call in inside
            )
            return None if has_forward else place
    return None


def _blocks(module: Module, node: ast.AST) -> list[ast.With | ast.AsyncWith]:
    """The ``with`` statements around a node in its function."""
    found: list[ast.With | ast.AsyncWith] = []
    current = module.parent(node)
    while current is not None and not isinstance(current, _FUNCTIONS):
        if isinstance(current, (ast.With, ast.AsyncWith)):
            found.append(current)
        current = module.parent(current)
    return found


def _no_sync_of(module: Module, model: str, block: ast.With | ast.AsyncWith) -> ast.expr | None:
    """Also in ``model.no_sync() if more else nullcontext()``."""
    for item in block.items:
        for part in ast.walk(item.context_expr):
            if isinstance(part, ast.Attribute) and part.attr == "no_sync":
                if module.text_of(part.value) == model:
                    return part
    return None


def _flag_between(module: Module, forward: ast.Call, backward: ast.Call) -> ast.expr | None:
    """The flag of the model, set between forward and backward of one turn of a loop, and nowhere else in it."""
    loop = next(loops_around(module, backward), None)
    if loop is None or next(loops_around(module, forward), None) is not loop:
        return None
    model = module.text_of(forward.func)
    flags = [
        node
        for node in module.nodes(ast.Attribute, inside=loop)
        if isinstance(node, ast.Attribute)
        and node.attr == _FLAG
        and isinstance(node.ctx, ast.Store)
        and module.text_of(node.value) == model
    ]
    if len(flags) != 1 or not _is_decided_by_turn(module, flags[0]):
        return None
    order = [module.order_of(node) for node in (forward, flags[0], backward)]
    return flags[0] if order == sorted(order) else None


def _is_decided_by_turn(module: Module, flag: ast.Attribute) -> bool:
    assignment = module.parent(flag)
    return isinstance(assignment, ast.Assign) and not isinstance(assignment.value, ast.Constant)
