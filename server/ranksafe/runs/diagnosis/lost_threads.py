"""Threads and processes of a rank that a log shows to have ended by an exception before the rank waited for them."""

from __future__ import annotations

from collections.abc import Iterable

from ranksafe.runs.explain.alike import gist
from ranksafe.runs.explain.evidence import Raised, RankEvidence
from ranksafe.runs.explain.failures import is_starved
from ranksafe.runs.explain.traceback_text import Located, locate_tracebacks
from ranksafe.runs.log_text.reader import SaidBy


def of_threads(found: Iterable[Located], rank: RankEvidence) -> list[Raised]:
    """What ended threads and processes for which the rank then waited in vain."""
    if rank.raised is None or not is_starved(rank.raised):
        return []
    until = rank.raised_at if rank.raised_at is not None and rank.raised_at >= 0 else float("inf")
    return [each.raised for each in found if each.raised.where and each.first < until]


def add_threads(ranks: dict[int, RankEvidence], said: SaidBy) -> None:
    """The same from tracebacks of nobody, where only one rank waited in vain, or all threads say the same."""
    starved = [rank for rank in ranks.values() if rank.raised and is_starved(rank.raised)]
    loose = [each for lines in said.others for each in lines.once(locate_tracebacks)]
    gists = {gist(each.raised) for each in loose if each.raised.where}
    for rank in starved:
        if not rank.thread_errors and (len(starved) == 1 or len(gists) == 1):
            rank.thread_errors = of_threads(loose, rank)
