"""RS532: a backward from the losses of all replicas of nn.DataParallel at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.wording import in_one_line
from ranksafe_rules._shared.wrapper_levels import level_of
from ranksafe_rules.model.replica_losses_not_averaged.replica_losses import replica_losses

_MESSAGE: Final = Translated(
    "nn.DataParallel gathers the losses of its replicas: on {count} GPUs {loss} has {count} elements, and backward() "
    'fails ("grad can be implicitly created only for scalar outputs"); average it first: {loss}.mean()',
    "nn.DataParallel 会收集各副本的损失：在 {count} 张 GPU 上 {loss} 有 {count} 个元素，backward() 会失败"
    "（“grad can be implicitly created only for scalar outputs”）；请先取平均：{loss}.mean()",
)
_GATHERED: Final = Translated("one element from each GPU", "每张 GPU 一个元素")
_WRAPPED: Final = Translated("the model is wrapped here", "模型在此处被包装")
_AVERAGE: Final = Translated("Average the losses of the GPUs", "对各 GPU 的损失取平均")


class ReplicaLossesNotAveraged(Rule):
    """Listens to backwards."""

    metadata = RuleMetadata(
        code="RS532",
        name="replica-losses-not-averaged",
        summary=Translated(
            "A backward from the vector of losses that nn.DataParallel gathers",
            "对 nn.DataParallel 收集的损失向量直接做反向",
        ),
        level=Level.WARNING,
        symptom=Symptom.CRASHES,
        since="0.1.0",
        run_signatures=(r"grad can be implicitly created only for scalar outputs",),
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Call,)
    called_names = frozenset({"backward"})
    mentions = frozenset({"DataParallel"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding where nothing makes a scalar of the losses."""
        assert isinstance(node, ast.Call)
        found = replica_losses(module, node)
        level = None if found is None else level_of(module, launch, found.wrapped)
        if found is None or level is None:
            return
        related = [
            Related(_GATHERED, module.range_of(found.forward)),
            Related(_WRAPPED, module.range_of(found.wrapped.place)),
        ]
        loss = in_one_line(module.text_of(found.loss))
        yield self.finding(
            module,
            node,
            _MESSAGE.filled(
                loss=loss if isinstance(found.loss, (ast.Name, ast.Attribute)) else f"({loss})",
                count=launch.assumed_gpus,
            ),
            level=level,
            related=related,
            fixes=[FixOffer("average", _AVERAGE, Applicability.SAFE)],
        )
