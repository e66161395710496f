"""RS522: an optimizer is built before the model's parameters are sharded."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed

from ranksafe_rules._shared.processes import Certainty, several_processes
from ranksafe_rules.model.optimizer_before_sharding.early_optimizers import (
    Early,
    early_optimizers,
    sharded_model,
)
from ranksafe_rules.model.optimizer_before_sharding.moving import edits_that_move

_MESSAGE: Final = Translated(
    "{optimizer} is built before {wrapper} replaces the parameters of {model}: it steps on the old ones, and the "
    "weights that are trained never change (no error)",
    "{optimizer} 在 {wrapper} 替换 {model} 的参数之前创建：它更新的是旧参数，真正参与训练的权重始终不变（不会报错）",
)
_SHARDED: Final = Translated("the parameters are replaced here", "参数在此处被替换")
_MOVE: Final = Translated(
    "Build {optimizer} after the model is sharded", "在模型分片之后再创建 {optimizer}"
)


class OptimizerBeforeSharding(Rule):
    """Listens to what shards a model."""

    metadata = RuleMetadata(
        code="RS522",
        name="optimizer-before-sharding",
        summary=Translated(
            "An optimizer that is built before FSDP shards the model trains nothing",
            "在 FSDP 对模型分片之前创建的优化器不会训练任何参数",
        ),
        level=Level.WARNING,
        symptom=Symptom.WRONG,
        since="0.1.0",
        silent_kinds=("optimizer-without-gradients",),
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Call,)
    called_names = frozenset({"FullyShardedDataParallel", "fully_shard"})
    mentions = frozenset({"FullyShardedDataParallel", "fully_shard"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding for each optimizer that this call leaves with the old parameters."""
        assert isinstance(node, ast.Call)
        if several_processes(module, launch, needs_a_group=True) is Certainty.NEVER:
            return
        model = sharded_model(module, node)
        for early in early_optimizers(module, node):
            assert model is not None
            if _was_sharded_before(module, node, early, unparsed(model)):
                continue
            optimizer = module.text_of(early.optimizer)
            wrapper = (module.qualified_name(node.func) or "").rpartition(".")[2]
            message = _MESSAGE.filled(
                optimizer=optimizer, wrapper=wrapper, model=module.text_of(model)
            )
            fixes = []
            if edits_that_move(module, early) is not None:
                title = _MOVE.filled(optimizer=optimizer)
                fixes.append(FixOffer("build-after", title, Applicability.SAFE))
            related = [Related(_SHARDED, module.range_of(node))]
            yield self.finding(module, early.call, message, related=related, fixes=fixes)


def _was_sharded_before(module: Module, wrap: ast.Call, early: Early, model: str) -> bool:
    """Whether another call shards the same model after the optimizer was built: it says it then."""
    for name in ("FullyShardedDataParallel", "FSDP", "fully_shard"):
        for other in module.calls_written(name):
            if other is wrap or module.order_of(other) > module.order_of(wrap):
                continue
            earlier = sharded_model(module, other)
            if earlier is not None and unparsed(earlier) == model:
                if module.order_of(other) > module.order_of(early.call):
                    return True
    return False
