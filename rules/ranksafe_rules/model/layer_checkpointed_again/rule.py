"""RS533: a layer that is used twice in a forward is checkpointed reentrantly, under DistributedDataParallel."""

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
from ranksafe_rules.model.layer_checkpointed_again.layer_uses import layers_used_again

_MESSAGE: Final = Translated(
    "{layer} is used more than once in a forward: with reentrant checkpointing its gradients come more than once, "
    'which DistributedDataParallel refuses ("Expected to mark a variable ready only once"); checkpoint with '
    "use_reentrant=False",
    "{layer} 在一次前向中被多次使用：可重入的检查点会使其梯度多次就绪，DistributedDataParallel 会报错"
    "（“Expected to mark a variable ready only once”）；请使用 use_reentrant=False 的检查点",
)
_AGAIN: Final = Translated("used again here", "在此处再次使用")
_REPEATED: Final = Translated("repeated here", "在此处重复")
_WRAPPED: Final = Translated("the model is wrapped here", "模型在此处被包装")
_NOT_REENTRANT: Final = Translated(
    "Checkpoint with use_reentrant=False", "使用 use_reentrant=False 的检查点"
)


class LayerCheckpointedAgain(Rule):
    """Listens to DistributedDataParallel."""

    metadata = RuleMetadata(
        code="RS533",
        name="layer-checkpointed-again",
        summary=Translated(
            "Reentrant checkpointing of a layer that is used more than once, under DistributedDataParallel",
            "DistributedDataParallel 下对多次使用的层做可重入的检查点",
        ),
        level=Level.WARNING,
        symptom=Symptom.CRASHES,
        since="0.1.0",
        run_signatures=(r"Expected to mark a variable ready only once",),
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Call,)
    called_names = frozenset({"DistributedDataParallel"})
    mentions = frozenset({"checkpoint"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding for each such layer, on its first checkpoint."""
        assert isinstance(node, ast.Call)
        if several_processes(module, launch, needs_a_group=True) is Certainty.NEVER:
            return
        for found in layers_used_again(module, node):
            call = found.calls[0]
            repeated = isinstance(found.other, (ast.For, ast.While))
            place = found.other.iter if isinstance(found.other, ast.For) else found.other
            if isinstance(place, ast.While):
                place = place.test
            yield self.finding(
                module,
                call,
                _MESSAGE.filled(layer=module.text_of(call.args[0])),
                related=[
                    Related(_REPEATED if repeated else _AGAIN, module.range_of(place)),
                    Related(_WRAPPED, module.range_of(node)),
                ],
                fixes=[FixOffer("not-reentrant", _NOT_REENTRANT, Applicability.SAFE)],
            )
