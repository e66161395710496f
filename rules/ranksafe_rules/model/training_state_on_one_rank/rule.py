"""RS535: rank 0 alone takes over a state that all ranks train on with."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Finding, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.processes import Certainty, several_processes
from ranksafe_rules.model.training_state_on_one_rank.state_changes import (
    Holder,
    StateChange,
    changes_on_some_ranks,
)

_STEP: Final = Translated(
    "Only rank 0 makes this step of the schedule: the other ranks go on with another learning rate, and the replicas "
    "drift apart (silently)",
    "只有 rank 0 执行这一步学习率调度：其他 rank 继续使用另一个学习率，各副本的权重会逐渐偏离（没有任何提示）",
)
_LOADED: Final = Translated(
    "Only rank 0 loads this state of the {holder}: DistributedDataParallel averages gradients, it hands no {holder} "
    "state on, so the replicas drift apart (silently)",
    "只有 rank 0 加载了 {holder} 的状态：DistributedDataParallel 只平均梯度，不会传递 {holder} 的状态，各副本的权重"
    "会逐渐偏离（没有任何提示）",
)
_MODEL: Final = Translated(
    "Only rank 0 loads these weights, and the model is wrapped already: DistributedDataParallel hands the weights of "
    "rank 0 on while it wraps, not later, so the other ranks train their own (silently)",
    "只有 rank 0 加载了这些权重，而模型已经包装：DistributedDataParallel 只在包装时传递 rank 0 的权重，之后不会，"
    "因此其他 rank 训练的是各自的权重（没有任何提示）",
)
_ASKED: Final = Translated("only rank 0 comes here", "只有 rank 0 会到达此处")


class TrainingStateOnOneRank(Rule):
    """Looks at the states that are loaded, and the schedules that go on."""

    metadata = RuleMetadata(
        code="RS535",
        name="training-state-on-one-rank",
        summary=Translated(
            "optimizer, scheduler or wrapped model that rank 0 alone brings up to date",
            "只有 rank 0 更新的优化器、学习率调度器或已包装的模型",
        ),
        level=Level.WARNING,
        symptom=Symptom.WRONG,
        since="0.1.0",
        silent_kinds=("diverged-weights",),
    )
    scope = Scope.MODULE
    at_rest = True
    mentions = frozenset({"load_state_dict", "lr_scheduler"})
    on_several_gpus = True

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:  # noqa: ARG002
        """A finding for each call that the other ranks do not make."""
        if not module.facts.distributed_data_parallel:
            return
        if several_processes(module, launch, needs_a_group=True) is Certainty.NEVER:
            return
        for change in changes_on_some_ranks(module):
            related = [Related(_ASKED, module.range_of(change.condition))]
            yield self.finding(module, change.call.func, _message(change), related=related)


def _message(change: StateChange) -> Translated:
    if change.is_step:
        return _STEP
    if change.holder is Holder.MODEL:
        return _MODEL
    return _LOADED.filled(holder=change.holder.value)
