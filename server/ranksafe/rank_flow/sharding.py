"""Whether a model's parameters are cut into shards, so that its state has to be gathered."""

from __future__ import annotations

import ast
import re

from ranksafe.rank_flow.values import Object, Value
from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import FUNCTIONS

_SHARDED = frozenset({"fsdp", "sharded", "zero3"})
_ASKS = re.compile(
    r"distributed_type\b(?!.*\bnot in\b)(?!.*!=).*(FSDP|DEEPSPEED)|"
    r"^(self\.)?(is_fsdp_enabled|is_fsdp|is_deepspeed_enabled|fsdp_enabled|use_fsdp)$"
)


def is_sharded(value: Value | None) -> bool:
    """Whether a model is wrapped by FSDP or ZeRO-3, or an Accelerator made for them."""
    return isinstance(value, Object) and value.detail in _SHARDED


def is_of_unknown_stage(value: Value | None) -> bool:
    """Whether the stage of a DeepSpeed engine stands in a file, or nowhere in sight."""
    return not isinstance(value, Object) or value.detail == "engine"


def is_guarded_by_sharding(module: Module, node: ast.AST) -> bool:
    """Whether code runs only for sharded models: in ``if accelerator.distributed_type == DistributedType.FSDP:``."""
    current, parent = node, module.parent(node)
    while parent is not None and not isinstance(current, FUNCTIONS):
        if isinstance(parent, ast.If) and current in parent.body:
            if _asks(module, parent.test):
                return True
        current, parent = parent, module.parent(parent)
    return False


def _asks(module: Module, test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_asks(module, item) for item in test.values)
    return _ASKS.search(module.text_of(test)) is not None
