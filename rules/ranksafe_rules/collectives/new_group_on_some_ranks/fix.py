"""The edit of RS412: all ranks perform it."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.rank_flow import Kind
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.collectives.edits import out_of_the_condition


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """The statement moved out of the condition; None when it is no longer there."""
    return out_of_the_condition(finding, module, Kind.GROUP_CONSTRUCTION)
