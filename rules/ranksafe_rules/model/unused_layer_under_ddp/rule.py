"""RS531: a model in DistributedDataParallel has a layer that its forward never calls."""

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
from ranksafe_rules.model.unused_layer_under_ddp.unused_layers import UnusedLayer, unused_layers

_MESSAGE: Final = Translated(
    "nothing uses {layer} of {cls}, so its parameters get no gradients, and DistributedDataParallel waits for them: "
    'the second forward fails ("Expected to have finished reduction in the prior iteration"); remove the layer',
    "{cls} 的 {layer} 从未被使用，其参数得不到梯度，而 DistributedDataParallel 会一直等待："
    "第二次前向会失败（“Expected to have finished reduction in the prior iteration”）；请删除该层",
)
_MADE: Final = Translated("made here, and never used", "在此处创建，但从未使用")
_SEARCH: Final = Translated(
    "Look for unused parameters in every iteration (slower, and hides such layers)",
    "每次迭代都查找未使用的参数（更慢，并会掩盖这类层）",
)
_MOST_SHOWN: Final = 5


class UnusedLayerUnderDdp(Rule):
    """Listens to DistributedDataParallel."""

    metadata = RuleMetadata(
        code="RS531",
        name="unused-layer-under-ddp",
        summary=Translated(
            "A layer that the model's forward never uses, under DistributedDataParallel",
            "DistributedDataParallel 下模型的前向从未使用的层",
        ),
        level=Level.WARNING,
        symptom=Symptom.CRASHES,
        since="0.1.0",
        run_signatures=(r"Expected to have finished reduction in the prior iteration",),
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Call,)
    called_names = frozenset({"DistributedDataParallel"})
    mentions = frozenset({"DistributedDataParallel"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """One finding for the model, with all layers that nothing uses."""
        assert isinstance(node, ast.Call)
        if several_processes(module, launch, needs_a_group=True) is Certainty.NEVER:
            return
        layers = unused_layers(module, node)
        if not layers:
            return
        cls = layers[0].cls
        names = [f"self.{item.store.attr}" for item in layers if item.cls is cls]
        message = _MESSAGE.filled(layer=", ".join(names[:_MOST_SHOWN]), cls=cls.name)
        fixes = []
        if not any(keyword.arg == "find_unused_parameters" for keyword in node.keywords):
            fixes.append(FixOffer("search", _SEARCH, Applicability.UNSAFE))
        related = [_place(module, item) for item in layers[:_MOST_SHOWN]]
        yield self.finding(module, node, message, related=related, fixes=fixes)


def _place(module: Module, layer: UnusedLayer) -> Related:
    place = layer.module.range_of(layer.store)
    return Related(_MADE, place, layer.module.path_from(module))
