"""Calls of torch's `clip_grad_norm_` on the parameters of a model that FullyShardedDataParallel has sharded."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.loss_inputs import calls_feeding
from ranksafe_rules._shared.origins import makers
from ranksafe_rules._shared.wrapped_models import is_possible

CLIPPING: Final = ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad.clip_grad_norm_")
_SHARDING: Final = "torch.distributed.fsdp.FullyShardedDataParallel"
"""FSDP2's `fully_shard` makes DTensors of the parameters, whose norm is that of all shards."""
_STRATEGIES: Final = frozenset(
    {"FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"}
)
"""Members of ShardingStrategy (torch 2.13.0 `distributed/fsdp/api.py`) with which a rank has a part of the gradients;
the default is the first."""
_ACCEPTED: Final = frozenset({"parameters", "max_norm", "norm_type"})
"""Arguments that the model's own method has as well."""


@dataclass(frozen=True, slots=True)
class ShardClip:
    """Clipping by the norm of one rank's shard."""

    model: ast.expr
    wrap: ast.Call
    replacement: str | None
    """The same with the model's own method, where the model is certainly sharded."""


def shard_clip(module: Module, clip: ast.Call) -> ShardClip | None:
    """What a call clips, if that is a sharded model whose own method nobody calls."""
    if module.qualified_name(clip.func) not in CLIPPING or _knows_the_method(module):
        return None
    parameters = module.argument_node(clip, "parameters", 0)
    if parameters is None:
        return None
    for call in calls_feeding(module, parameters):
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "parameters":
            continue
        model = call.func.value
        made = list(makers(module, model))
        for wrap in made:
            if module.qualified_name(wrap.func) == _SHARDING and _is_sharded(module, wrap):
                if is_possible(module, (*module.guards(wrap), *module.guards(clip))):
                    certain = len(made) == 1 and not module.guards(wrap) and call is parameters
                    text = _replacement(module, clip, model) if certain else None
                    return ShardClip(model, wrap, text)
    return None


def _knows_the_method(module: Module) -> bool:
    """Whether the file calls `clip_grad_norm_` of a model or of an accelerator: what torch's own is for, then, is
    another way to train."""
    return any(
        isinstance(call.func, ast.Attribute) and module.qualified_name(call.func) not in CLIPPING
        for call in module.calls_written("clip_grad_norm_")
    )


def _is_sharded(module: Module, wrap: ast.Call) -> bool:
    if any(keyword.arg is None for keyword in wrap.keywords):
        return False
    strategy = module.argument_node(wrap, "sharding_strategy", 2)
    if strategy is None:
        return True
    value = module.values(strategy).only_expression()
    written = strategy if value is None else value
    return isinstance(written, ast.Attribute) and written.attr in _STRATEGIES


def _replacement(module: Module, clip: ast.Call, model: ast.expr) -> str | None:
    given = {keyword.arg for keyword in clip.keywords}
    if not given <= _ACCEPTED or len(clip.args) > len(_ACCEPTED):
        return None
    rest = [*clip.args, *(item for item in clip.keywords if item.arg != "parameters")]
    if "parameters" not in given:
        rest = rest[1:]
    arguments = ", ".join(module.text_of(item) for item in rest)
    return f"{module.text_of(model)}.clip_grad_norm_({arguments})"
