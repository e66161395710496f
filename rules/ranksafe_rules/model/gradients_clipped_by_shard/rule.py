"""RS536: gradients of a sharded model are clipped by the norm of one rank's shard."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.processes import Certainty, several_processes
from ranksafe_rules._shared.wording import in_one_line
from ranksafe_rules.model.gradients_clipped_by_shard.shard_clips import shard_clip

_MESSAGE: Final = Translated(
    "FullyShardedDataParallel leaves each rank a shard of the gradients, and this takes the norm of one shard: it is "
    "too small, other on every rank, and the gradients are clipped too little (silently); use "
    "{model}.clip_grad_norm_(...)",
    "FullyShardedDataParallel 让每个 rank 只持有梯度的一个分片，而这里计算的是单个分片的范数：它偏小且各 rank 不同，"
    "梯度裁剪因此不足（没有任何提示）；请使用 {model}.clip_grad_norm_(...)",
)
_SHARDED: Final = Translated("sharded here", "在此处分片")
_METHOD: Final = Translated(
    "Clip by the norm of all shards: {text}", "按所有分片的总范数裁剪：{text}"
)


class GradientsClippedByShard(Rule):
    """Listens to torch's `clip_grad_norm_`."""

    metadata = RuleMetadata(
        code="RS536",
        name="gradients-clipped-by-shard",
        summary=Translated(
            "torch.nn.utils.clip_grad_norm_ on the parameters of an FSDP model",
            "对 FSDP 模型的参数使用 torch.nn.utils.clip_grad_norm_",
        ),
        level=Level.WARNING,
        symptom=Symptom.WRONG,
        since="0.1.0",
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Call,)
    called_names = frozenset({"clip_grad_norm_"})
    mentions = frozenset({"FullyShardedDataParallel"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding where the model was wrapped in this file."""
        assert isinstance(node, ast.Call)
        if several_processes(module, launch, needs_a_group=True) is Certainty.NEVER:
            return
        found = shard_clip(module, node)
        if found is None:
            return
        fixes = []
        if found.replacement is not None:
            title = _METHOD.filled(text=in_one_line(found.replacement))
            fixes.append(FixOffer("method", title, Applicability.SAFE))
        yield self.finding(
            module,
            node,
            _MESSAGE.filled(model=in_one_line(module.text_of(found.model))),
            related=[Related(_SHARDED, module.range_of(found.wrap))],
            fixes=fixes,
        )
