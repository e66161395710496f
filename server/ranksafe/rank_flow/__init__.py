"""Rank flow: which collectives each rank performs, and where ranks part.

This is the door: rules and the command line import from here and nowhere deeper.
"""

from __future__ import annotations

from ranksafe.rank_flow.analysis import TASK, RankFlow
from ranksafe.rank_flow.diagram import Cell, Row, Traces, rows
from ranksafe.rank_flow.issues import Issue, Kind
from ranksafe.rank_flow.traces import Place
from ranksafe.rank_flow.unwaited import CHANGED, CUT_OFF, KEPT
from ranksafe.semantics.module import Module

__all__ = [
    "CHANGED", "CUT_OFF", "KEPT", "TASK", "Cell", "Issue", "Kind", "Place", "RankFlow", "Row", "Traces", "rank_issues",
    "rows",
]  # fmt: skip


def rank_issues(module: Module, ranks: int | None = None) -> list[Issue]:
    """What goes wrong between the ranks in a file, in source order; computed once for each version of its text.

    ``ranks``: how many there will be, where that is known.
    """
    kept = module.answers.get("rank issues")
    if kept is None or kept[0] != ranks:
        kept = module.answers["rank issues"] = (ranks, RankFlow(module, ranks).issues())
    found: list[Issue] = kept[1]
    return found
