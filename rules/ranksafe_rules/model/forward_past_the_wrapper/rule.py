"""RS521: the forward of a loss goes to the model inside the wrapper."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed

from ranksafe_rules._shared import trainer_methods
from ranksafe_rules._shared.loss_inputs import calls_feeding
from ranksafe_rules._shared.optimized_models import is_left_alone
from ranksafe_rules._shared.wrapper_levels import distributed_level
from ranksafe_rules.model.forward_past_the_wrapper.inner_calls import Past, past_wrapper

_REDUCED_BY_HAND: Final = re.compile(
    r"(reduce|average|avg|sync|synchronize)\w{0,40}_grad|grad\w{0,40}_(reduce|average|sync)"
    r"|reduce\w{0,40}\([^)\n]{0,120}\bgrad\b"
)
"""Somebody averages the gradients himself, which is another way to be right."""
_MESSAGE: Final = Translated(
    "this forward goes past the wrapper ({inner}), so DistributedDataParallel reduces no gradients in the backward of "
    "its loss: every rank trains on its own data, and the weights drift apart silently",
    "这次前向绕过了包装器（{inner}），DistributedDataParallel 在该损失的反向中不会归约梯度："
    "每个 rank 只用自己的数据训练，权重会悄悄分叉",
)
_BACKWARD: Final = Translated("the backward of its loss", "其损失的反向")
_CALL_WRAPPER: Final = Translated("Call the wrapper: {text}(...)", "调用包装器：{text}(...)")


class ForwardPastTheWrapper(Rule):
    """Listens to backwards and to a Trainer's compute_loss."""

    metadata = RuleMetadata(
        code="RS521",
        name="forward-past-the-wrapper",
        summary=Translated(
            "A loss is computed by the model inside its DDP wrapper: no gradients are reduced",
            "损失由 DDP 包装器内部的模型计算：梯度不会被归约",
        ),
        level=Level.WARNING,
        symptom=Symptom.WRONG,
        since="0.1.0",
        silent_kinds=("diverged-weights",),
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Call, ast.FunctionDef)
    called_names = frozenset({"backward"})
    mentions = frozenset({"DataParallel", "ccelerator", "Trainer", ".module"})
    on_several_gpus = True

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """One finding for each forward past a wrapper whose own forward the loss does not have."""
        if isinstance(node, ast.Call) and _only_reads_gradients(module, node):
            return
        found = [item for loss in _losses(module, node) for item in _past_wrappers(module, loss)]
        reported = _reported_before(module, node) if found else set()
        for call, past in found:
            if call not in reported:
                reported.add(call)
                yield from self._found(module, launch, call, past, node)

    def _found(
        self, module: Module, launch: LaunchContext, call: ast.Call, past: Past, backward: ast.AST
    ) -> Iterator[Finding]:
        levels = [
            distributed_level(module, launch, wrapped)
            for wrapped in past.wraps.known
            if not is_left_alone(module, wrapped.place)
        ]
        known = [level for level in levels if level is not None]
        if not known or module.text_says(_reduces_by_hand):
            return
        related = [Related(_BACKWARD, module.range_of(backward))]
        fixes = []
        if past.is_model_itself:
            title = _CALL_WRAPPER.filled(text=past.wrapper)
            fixes.append(FixOffer("call-wrapper", title, Applicability.SAFE))
        yield self.finding(
            module,
            call.func,
            _MESSAGE.filled(inner=module.text_of(call.func)),
            level=max(known),
            related=related if isinstance(backward, ast.Call) else [],
            fixes=fixes,
        )


def _past_wrappers(module: Module, loss: ast.expr) -> Iterator[tuple[ast.Call, Past]]:
    """The forwards past a wrapper that feed a loss, where the wrapper's own forward does not."""
    calls = calls_feeding(module, loss)
    called = {unparsed(call.func) for call in calls}
    for call in calls:
        past = past_wrapper(module, call)
        if past is not None and past.wrapper not in called:
            yield call, past


def _only_reads_gradients(module: Module, backward: ast.Call) -> bool:
    """Whether a function begins from no gradients and takes no step with those that it has then, as Grad-CAM does."""
    function = module.enclosing_function(backward)
    words = set()
    for call in [] if function is None else module.nodes(ast.Call, inside=function):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            words.add(call.func.attr)
    return "zero_grad" in words and not any(word.endswith("step") for word in words)


def _reported_before(module: Module, node: ast.AST) -> set[ast.Call]:
    """What an earlier backward has for an input: of several backwards of one loss (with a scaler and without), one
    says it."""
    return {
        call
        for backward in module.calls_written("backward")
        if module.order_of(backward) < module.order_of(node)
        for loss in _losses(module, backward)
        for call in calls_feeding(module, loss)
    }


def _losses(module: Module, node: ast.AST) -> list[ast.expr]:
    """What a backward starts from, or what a Trainer's compute_loss returns."""
    if isinstance(node, ast.FunctionDef):
        if trainer_methods.override_of(module, node, "compute_loss") is None:
            return []
        values = [item.value for item in module.returns_of(node) if item.value is not None]
        return [_loss_of_pair(value) for value in values]
    assert isinstance(node, ast.Call)
    if isinstance(node.func, ast.Attribute):
        # ``accelerator.backward(loss)``, ``scaler.scale(loss).backward()``, ``loss.backward(retain_graph=True)``.
        return [*node.args, node.func.value]
    return list(node.args)


def _loss_of_pair(value: ast.expr) -> ast.expr:
    """``loss`` of ``(loss, outputs) if return_outputs else loss``."""
    if isinstance(value, ast.IfExp):
        value = value.orelse
    return value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value


def _reduces_by_hand(text: str) -> bool:
    return _REDUCED_BY_HAND.search(text) is not None
