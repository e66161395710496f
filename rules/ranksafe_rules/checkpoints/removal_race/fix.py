"""The edits of RS606: rank 0 removes the path, or it may be gone already."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import add_argument, replace
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.checkpoints.edits import guarded
from ranksafe_rules.checkpoints.removed_paths import removals


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:
    """The statement below a condition on the rank, or ``missing_ok=True``; None when the call is gone."""
    for removal in removals(module):
        if module.range_of(removal.call.func) != finding.range:
            continue
        if offer.key == "only-rank-0":
            return guarded(module, removal.call)
        given = module.argument_node(removal.call, "missing_ok", 0)
        if given is not None:
            return [replace(module, given, "True")]
        return [add_argument(module, removal.call, "missing_ok=True")]
    return None
