"""A node of a job that is gone, told with the ranks that were on it: they are the first cause, whatever the others say.

Ranks on other nodes feel it as lost connections, or wait for ever; the lost ones have no last word. Where each stood is
what its heartbeat told last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ranksafe.localization import Language, Translated, both
from ranksafe.runs.explain.evidence import Evidence, RankEvidence
from ranksafe.runs.explain.hangs import last_seen, waiting_ranks
from ranksafe.runs.explain.locate import APPROXIMATE
from ranksafe.runs.model import Failure

KIND: Final = "node-failure"
_FELT = frozenset(
    {"collective-timeout", "hang", "launcher", "peer-lost", "rank-left-early", "run-lost"}
    | {"stopped-by-launcher", "terminated", "watchdog-stuck"}
)
"""Kinds that a lost node brings about elsewhere; anything else a rank said is its own."""


def is_cause(failures: Sequence[Failure], lost: Sequence[str], evidence: Evidence) -> bool:
    """Whether a node's loss explains the run: no rank elsewhere failed by itself."""
    gone = {number for number, rank in evidence.ranks.items() if rank.host in lost}
    return all(
        failure.kind in _FELT or failure.rank is None or failure.rank in gone
        for failure in failures
        if failure.root_cause
    )


def with_ranks(
    cause: Failure,
    failures: Sequence[Failure],
    lost: Sequence[str],
    evidence: Evidence,
    language: Language,
) -> list[Failure]:
    """``cause``, drawn where the first rank of the lost nodes stood, and behind it where every other one did.

    ``failures``: what was made of the evidence alone. A rank that is lost with its node keeps only an exception of its
    own among them.
    """
    ranks = [rank for _, rank in sorted(evidence.ranks.items())]
    gone = [rank for rank in ranks if rank.host in lost and not rank.ended]
    waiting = waiting_ranks(ranks)

    def standing(rank: RankEvidence) -> Failure:
        words = _WAITED if rank.rank in waiting else _WORKED
        seen = last_seen(rank, cause.kind, words, APPROXIMATE, language)
        return replace(seen, root_cause=False)

    placed = [standing(rank) for rank in gone if rank.beat]
    silent = {rank.rank for rank in gone if rank.raised is None}
    known = [
        replace(each, root_cause=False)
        for each in failures
        if each.rank is not None and each.rank not in silent
    ]
    told = {each.rank for each in known} | {rank.rank for rank in gone}
    others = [
        standing(rank) for rank in ranks if rank.beat and not rank.ended and rank.rank not in told
    ]
    if placed:
        numbers = ", ".join(str(rank.rank) for rank in gone)
        first, *rest = placed
        message = _WITH.filled(what=cause.message, ranks=numbers).in_language(language)
        explanation = both(cause.explanation, APPROXIMATE)
        cause = replace(first, message=message, explanation=explanation, root_cause=True)
        others = [*rest, *others]
    return [cause, *known, *others]


_WITH = Translated(
    en="{what}, and with it rank {ranks}", zh_cn="{what}，其上的 rank {ranks} 随之丢失"
)
_WAITED = Translated(
    en="rank {rank} waited here for other ranks when a node failed",
    zh_cn="节点发生故障时，rank {rank} 正在此处等待其他 rank",
)
_WORKED = Translated(
    en="rank {rank} was here when a node failed", zh_cn="节点发生故障时，rank {rank} 正在此处"
)
