"""The edits of RS533: ``use_reentrant=False`` in all checkpoints of the layer."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import add_argument, replace
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules._shared.wrapped_models import DISTRIBUTED
from ranksafe_rules.model.layer_checkpointed_again.layer_uses import layers_used_again


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """One edit for each of them; None when the code has changed."""
    for wrap in module.calls(DISTRIBUTED):
        for found in layers_used_again(module, wrap):
            if module.range_of(found.calls[0]) == finding.range:
                return [_edit(module, call) for call in found.calls]
    return None


def _edit(module: Module, call: ast.Call) -> Edit:
    given = module.argument_node(call, "use_reentrant")
    if given is None:
        return add_argument(module, call, "use_reentrant=False")
    return replace(module, given, "False")
