"""Rank flow: which collectives each rank performs, and where ranks part.

This is the door: rules import from here and nowhere deeper. The command line also draws what two ranks do, and takes
that from `analysis` and `diagram`.
"""

from __future__ import annotations

from ranksafe.rank_flow.issues import CHANGED, CUT_OFF, KEPT, Issue, Kind
from ranksafe.semantics.module import Module

__all__ = ["CHANGED", "CUT_OFF", "KEPT", "Issue", "Kind", "rank_issues"]


def rank_issues(module: Module, ranks: int | None = None) -> list[Issue]:
    """What goes wrong between the ranks in a file, in source order; computed once for each version of its text.

    ``ranks``: how many there will be, where that is known.
    """
    # Imported here: in most checks there is no file whose ranks could part, and it is a tenth of their start.
    from ranksafe.rank_flow.analysis import RankFlow

    kept = module.answers.get("rank issues")
    if kept is None or kept[0] != ranks:
        kept = module.answers["rank issues"] = (ranks, RankFlow(module, ranks).issues())
    found: list[Issue] = kept[1]
    return found
