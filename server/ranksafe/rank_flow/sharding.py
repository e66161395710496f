"""Whether a model's parameters are cut into shards, so that its state has to be gathered."""

from __future__ import annotations

import ast
import re

from ranksafe.rank_flow.values import Object, Value
from ranksafe.semantics.module import Module

_SHARDED = frozenset({"fsdp", "sharded", "zero3"})
_ASKS = re.compile(
    r"distributed_type\b.*(FSDP|DEEPSPEED)|"
    r"^(self\.)?(is_fsdp_enabled|is_fsdp|is_deepspeed_enabled|fsdp_enabled|use_fsdp)$"
)
_OTHERWISE = re.compile(r"!=|\bnot in\b")


def is_sharded(value: Value | None) -> bool:
    """Whether a model is wrapped by FSDP or ZeRO-3, or an Accelerator made for them."""
    return isinstance(value, Object) and value.detail in _SHARDED


def is_of_unknown_stage(value: Value | None) -> bool:
    """Whether the stage of a DeepSpeed engine stands in a file, or nowhere in sight."""
    return not isinstance(value, Object) or value.detail == "engine"


def is_guarded_by_sharding(module: Module, node: ast.AST) -> bool:
    """Whether code runs only for sharded models: in ``if accelerator.distributed_type == DistributedType.FSDP:``."""
    return any(_asks(module, guard.test, guard.positive) for guard in module.guards(node))


def _asks(module: Module, test: ast.expr, holds: bool) -> bool:
    """Whether a test that holds, or does not, says that the model is sharded."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return holds and any(_asks(module, item, holds) for item in test.values)
    if isinstance(test, ast.Name) and (assigned := module.flow.assigned_values(test)):
        return all(_asks(module, item, holds) for item in assigned)
    text = module.text_of(test)
    return _ASKS.search(text) is not None and (_OTHERWISE.search(text) is None) is holds
