"""RS530: gradients are reduced in every backward of an accumulation, though the last one would do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Finding, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.option_values import stays_at
from ranksafe_rules._shared.wording import in_one_line
from ranksafe_rules._shared.wrapped_models import Wrapper
from ranksafe_rules._shared.wrapper_levels import distributed_level
from ranksafe_rules.model.accumulation_without_no_sync.accumulation import (
    Accumulation,
    accumulation_at,
)

_HELD_BACK: Final = re.compile(
    r"no_sync|require_backward_grad_sync|gradient_sync\b|\.accumulate\(|deepspeed", re.IGNORECASE
)
"""The file knows how to hold back the reduction, or may leave it to an engine that does."""
_NO_SYNC: Final = Translated(
    "the optimizer steps once in {steps} backwards, but each of them reduces the gradients of all ranks: run forward "
    "and backward of all but the last in {model}.no_sync() (slower, not wrong)",
    "优化器每 {steps} 次反向才更新一次，但每次反向都会在所有 rank 之间归约梯度："
    "除最后一次外，前向和反向都应放在 {model}.no_sync() 中（只是更慢，结果无误）",
)
_ACCUMULATE: Final = Translated(
    "the optimizer steps once in {steps} backwards, but each of them reduces the gradients of all ranks: put the "
    "forward and the backward into accelerator.accumulate({model}) (slower, not wrong)",
    "优化器每 {steps} 次反向才更新一次，但每次反向都会在所有 rank 之间归约梯度："
    "应把前向和反向放在 accelerator.accumulate({model}) 中（只是更慢，结果无误）",
)
_STEP: Final = Translated("the step that the gradients wait for", "梯度所等待的优化器更新")
_FORWARD: Final = Translated(
    "whether the backward reduces is decided in this forward", "反向是否归约在这次前向中决定"
)


class AccumulationWithoutNoSync(Rule):
    """Listens to backwards."""

    metadata = RuleMetadata(
        code="RS530",
        name="accumulation-without-no-sync",
        summary=Translated(
            "Gradient accumulation that reduces the gradients in every backward",
            "梯度累积的每次反向都归约梯度",
        ),
        level=Level.INFORMATION,
        symptom=Symptom.SLOW,
        since="0.1.0",
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Call,)
    called_names = frozenset({"backward"})
    mentions = frozenset({"DistributedDataParallel", "ccelerator"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding for the first backward of an accumulation."""
        assert isinstance(node, ast.Call)
        if module.text_says(_may_hold_back):
            return
        found = accumulation_at(module, node)
        if found is None or _is_told_already(module, node, found):
            return
        if all(distributed_level(module, launch, item) is None for item in found.wrapped):
            return
        if stays_at(module, found.steps, 1):
            return
        prepared = found.wrapped[0].how is Wrapper.PREPARED
        message = (_ACCUMULATE if prepared else _NO_SYNC).filled(
            steps=in_one_line(module.text_of(found.steps)),
            model=in_one_line(module.text_of(found.forward.func)),
        )
        related = [
            Related(_FORWARD, module.range_of(found.forward.func)),
            Related(_STEP, module.range_of(found.step)),
        ]
        yield self.finding(module, node, message, related=related)


def _is_told_already(module: Module, node: ast.Call, found: Accumulation) -> bool:
    """Whether an earlier backward, which runs wherever this one does, belongs to the same step: several losses of one
    loop are one thing to mend."""
    around = module.guards(node)
    earlier = (
        accumulation_at(module, other)
        for other in module.calls_written("backward")
        if module.order_of(other) < module.order_of(node)
        and all(guard in around for guard in module.guards(other))
    )
    return any(other is not None and other.step is found.step for other in earlier)


def _may_hold_back(text: str) -> bool:
    return _HELD_BACK.search(text) is not None
