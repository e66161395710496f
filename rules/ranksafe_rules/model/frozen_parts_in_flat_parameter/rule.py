"""RS540: FullyShardedDataParallel flattens frozen and trained parameters together."""

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
from ranksafe_rules.model.frozen_parts_in_flat_parameter.partly_frozen import what_freezes

_MESSAGE: Final = Translated(
    "a part of this model is frozen, and FullyShardedDataParallel flattens it together with parameters that are "
    'trained, which it refuses ("Must flatten tensors with uniform `requires_grad` when `use_orig_params=False`")',
    "该模型有一部分已冻结，而 FullyShardedDataParallel 会把它与参与训练的参数展平到一起，并因此报错"
    "（“Must flatten tensors with uniform `requires_grad` when `use_orig_params=False`”）",
)
_FROZEN: Final = Translated("some parameters are frozen here", "部分参数在此处冻结")
_KEEP: Final = Translated(
    "Keep the original parameters (use_orig_params=True)", "保留原始参数（use_orig_params=True）"
)


class FrozenPartsInFlatParameter(Rule):
    """Listens to FullyShardedDataParallel."""

    metadata = RuleMetadata(
        code="RS540",
        name="frozen-parts-in-flat-parameter",
        summary=Translated(
            "a partly frozen model in FullyShardedDataParallel without use_orig_params",
            "部分冻结的模型在 FullyShardedDataParallel 中没有使用 use_orig_params",
        ),
        level=Level.WARNING,
        symptom=Symptom.CRASHES,
        since="0.1.0",
        run_signatures=(
            r"Must flatten tensors with uniform `requires_grad`",
            r"FlatParameter` requires uniform `requires_grad`",
            r"has both parameters with requires_grad=True and False\. FSDP does not support",
        ),
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Call,)
    called_names = frozenset({"FullyShardedDataParallel"})
    mentions = frozenset({"requires_grad", "get_peft_model"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding where the parameters are flattened together."""
        assert isinstance(node, ast.Call)
        original = module.argument(node, "use_orig_params")
        if original is not None and original.only_constant() is not False:
            return
        freezing = what_freezes(module, node)
        certainty = several_processes(module, launch, needs_a_group=True)
        if freezing is None or certainty is Certainty.NEVER:
            return
        certain = certainty is Certainty.KNOWN and not module.guards(node)
        certain = certain and not module.guards(freezing)
        yield self.finding(
            module,
            node,
            _MESSAGE,
            level=Level.ERROR if certain else Level.WARNING,
            related=[Related(_FROZEN, module.range_of(freezing))],
            fixes=[FixOffer("keep-original", _KEEP, Applicability.SAFE)],
        )
