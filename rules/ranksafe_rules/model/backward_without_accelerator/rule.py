"""RS524: `loss.backward()` where accelerate prepared the model."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.processes import Certainty, several_processes
from ranksafe_rules.model.backward_without_accelerator.plain_backwards import (
    PlainBackward,
    plain_backward,
)

_ACCUMULATING: Final = Translated(
    "accelerate is set up to accumulate gradients, but {loss}.backward() does not divide the loss by the number of "
    "steps as accelerator.backward({loss}) does: the gradients are that many times too large",
    "accelerate 已配置为累积梯度，但 {loss}.backward() 不会像 accelerator.backward({loss}) 那样把损失除以累积步数："
    "梯度会大相应的倍数",
)
_HALF: Final = Translated(
    "with mixed_precision='fp16' {loss}.backward() leaves out the loss scaling that the prepared optimizer waits for: "
    'its step fails ("Attempted step but _scale is None"); use accelerator.backward({loss})',
    "使用 mixed_precision='fp16' 时，{loss}.backward() 跳过了准备好的优化器所等待的损失缩放：其 step 会失败"
    "（“Attempted step but _scale is None”）；应使用 accelerator.backward({loss})",
)
_ANY: Final = Translated(
    "accelerator.backward({loss}) is what accelerate expects: {loss}.backward() is right for plain DDP only, and wrong "
    "as soon as the launch asks for fp16, DeepSpeed or gradient accumulation",
    "accelerate 要求使用 accelerator.backward({loss})：{loss}.backward() 只对普通 DDP 正确，一旦启动配置使用 fp16、"
    "DeepSpeed 或梯度累积就会出错",
)
_USE: Final = Translated("Use accelerator.backward", "改用 accelerator.backward")
_USE_AND_DIVIDE: Final = Translated(
    "Use accelerator.backward (divides the loss by gradient_accumulation_steps)",
    "改用 accelerator.backward（会把损失除以 gradient_accumulation_steps）",
)


class BackwardWithoutAccelerator(Rule):
    """Listens to backwards."""

    metadata = RuleMetadata(
        code="RS524",
        name="backward-without-accelerator",
        summary=Translated(
            "`loss.backward()` instead of `accelerator.backward(loss)`",
            "使用 `loss.backward()` 而不是 `accelerator.backward(loss)`",
        ),
        level=Level.INFORMATION,
        symptom=Symptom.WRONG,
        since="0.1.0",
        run_signatures=(r"Attempted (step|unscale_) but _scale is None",),
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Call,)
    called_names = frozenset({"backward"})
    mentions = frozenset({"ccelerator"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding where the loss comes from a prepared model."""
        assert isinstance(node, ast.Call)
        plain = plain_backward(module, node)
        if plain is None or _is_one_of_two_ways(module, node):
            return
        accumulates = _accumulates(module)
        if accumulates and not plain.divided:
            message, level = _ACCUMULATING, Level.WARNING
        elif _is_half(module):
            message, level = _HALF, Level.WARNING
        elif plain.optional or several_processes(module, launch) is Certainty.NEVER:
            return
        else:
            message, level = _ANY, Level.INFORMATION
        loss = module.text_of(plain.loss)
        yield self.finding(
            module,
            node,
            message.filled(loss=loss if len(loss) < 30 else "loss"),
            level=level,
            fixes=_fixes(plain, accumulates),
        )


def _fixes(plain: PlainBackward, accumulates: bool) -> list[FixOffer]:
    if plain.accelerator is None or (accumulates and plain.divided):
        return []
    if accumulates:
        return [FixOffer("use-accelerator", _USE_AND_DIVIDE, Applicability.UNSAFE)]
    return [FixOffer("use-accelerator", _USE, Applicability.SAFE)]


def _is_one_of_two_ways(module: Module, node: ast.Call) -> bool:
    """Whether the same function calls `accelerator.backward` too: one of the two is for runs without accelerate."""
    function = module.enclosing_function(node)
    return any(
        call.args and module.enclosing_function(call) is function
        for call in module.calls_written("backward")
    )


def _accumulates(module: Module) -> bool:
    for call in module.calls_written("Accelerator"):
        steps = module.argument(call, "gradient_accumulation_steps")
        if steps is not None and steps.only_constant() != 1:
            return True
        if any(keyword.arg == "gradient_accumulation_plugin" for keyword in call.keywords):
            return True
    return False


def _is_half(module: Module) -> bool:
    return any(
        precision.only_constant() == "fp16"
        for call in module.calls_written("Accelerator")
        if (precision := module.argument(call, "mixed_precision")) is not None
    )
