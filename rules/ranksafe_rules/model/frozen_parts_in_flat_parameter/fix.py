"""The edit of RS540."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import add_argument, replace
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.model.frozen_parts_in_flat_parameter.partly_frozen import SHARDED


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """``use_orig_params=True``; None when the call is no longer there, or gets the argument from somewhere else."""
    for call in module.calls(SHARDED):
        if module.range_of(call) == finding.range:
            for keyword in call.keywords:
                if keyword.arg == "use_orig_params":
                    return [replace(module, keyword.value, "True")]
            if module.argument(call, "use_orig_params") is not None:
                return None
            return [add_argument(module, call, "use_orig_params=True")]
    return None
