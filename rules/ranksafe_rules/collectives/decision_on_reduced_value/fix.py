"""The edit of RS405: ``all_reduce`` instead of ``reduce``."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import remove_argument
from ranksafe.fixes.places import places_of
from ranksafe.rank_flow import Kind
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.collectives.edits import issue_at, reduction


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """The call renamed and its destination taken out; None when it is no longer there."""
    issue = issue_at(finding, module, Kind.REDUCED_DECISION)
    found = None if issue is None else reduction(issue, module)
    if found is None:
        return None
    call, destination = found
    places = places_of(module)
    end = places.span(module, call.func)[1]
    renamed = places.edit(end - len("reduce"), end, "all_reduce")
    return [renamed, remove_argument(module, call, destination)]
