"""The edit of RS532: the losses are averaged."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import replace
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.model.replica_losses_not_averaged.replica_losses import replica_losses

_NEED_NO_PARENTHESES = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """``loss.mean()`` for ``loss``; None when the code has changed."""
    for backward in module.calls_written("backward"):
        if module.range_of(backward) == finding.range:
            found = replica_losses(module, backward)
            if found is None:
                return None
            text = module.text_of(found.loss)
            if not isinstance(found.loss, _NEED_NO_PARENTHESES):
                text = f"({text})"
            return [replace(module, found.loss, f"{text}.mean()")]
    return None
