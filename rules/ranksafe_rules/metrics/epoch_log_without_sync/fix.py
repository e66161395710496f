"""The edit of RS703."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import add_argument
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """``sync_dist=True`` at the end of the call; None when the call is no longer there."""
    for name in ("log", "log_dict"):
        for call in module.calls_written(name):
            if module.range_of(call) == finding.range:
                return [add_argument(module, call, "sync_dist=True")]
    return None
