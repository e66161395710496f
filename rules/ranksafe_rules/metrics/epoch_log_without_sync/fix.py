"""The edit of RS703."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import add_argument
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.metrics.epoch_log_without_sync.step_logs import logs_by_step, takes_sync


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """``sync_dist=True`` at the end of the calls of one step; None when they are no longer there."""
    for cls in module.nodes(ast.ClassDef):
        assert isinstance(cls, ast.ClassDef)
        for calls in logs_by_step(module, cls):
            if any(module.range_of(call) == finding.range for call in calls):
                return [
                    add_argument(module, call, "sync_dist=True")
                    for call in calls
                    if takes_sync(module, call)
                ]
    return None
