"""The edit of RS203: take the plan out of the call."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import remove_argument
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """One removal; None when the argument is no longer there. A ``distributed_config`` goes as a whole only if the
    plan is all it says."""
    for call in module.calls_written("from_pretrained"):
        for keyword in call.keywords:
            value = keyword.value
            if keyword.arg == "tp_plan" and module.range_of(value) == finding.range:
                return [remove_argument(module, call, keyword)]
            if keyword.arg == "distributed_config" and isinstance(value, ast.Call):
                settings = [item for item in value.keywords if item.arg == "tp_plan"]
                if settings and module.range_of(settings[0].value) == finding.range:
                    alone = len(value.keywords) == 1 and not value.args
                    target = (call, keyword) if alone else (value, settings[0])
                    return [remove_argument(module, *target)]
    return None
