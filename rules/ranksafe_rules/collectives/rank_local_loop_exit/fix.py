"""The edit of RS404: the ranks decide together."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.rank_flow import Kind
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.collectives.decisions import decide_together
from ranksafe_rules.collectives.edits import issue_at


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:
    """A trigger, or a gathered decision; None when the code has changed."""
    issue = issue_at(finding, module, Kind.LOOP_EXIT)
    return None if issue is None else decide_together(issue, offer.key, module)
