"""A run that did not end in time: where each rank stood, and which one the others waited for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ranksafe.localization import Language, Translated
from ranksafe.runs.explain.collective_order import KIND as PARTED
from ranksafe.runs.explain.evidence import RankEvidence
from ranksafe.runs.explain.locate import innermost_user_frame
from ranksafe.runs.explain.signatures import meaning_of_end
from ranksafe.runs.model import Failure, Frame

KIND = "time-limit"


def hang_failures(ranks: Sequence[RankEvidence], language: Language) -> list[Failure]:
    """One failure per rank that was still going; those that were not waiting for others come first, as the cause.

    Where every rank waits, or none does, nobody is singled out.
    """
    going, meaning = _going(ranks), meaning_of_end(KIND)
    if not going:
        return [Failure.without_place(KIND, _NOTHING_SEEN, meaning, language)]
    waiting = waiting_ranks(ranks)
    everyone_alike = len(waiting) in (0, len(going))
    words = {rank.rank: _WAITED if rank.rank in waiting else _WENT_ON for rank in going}
    failures = [last_seen(rank, KIND, words[rank.rank], meaning, language) for rank in going]
    caused = [
        replace(each, root_cause=everyone_alike or each.rank not in waiting) for each in failures
    ]
    return sorted(caused, key=lambda failure: not failure.root_cause)


def waiting_ranks(ranks: Sequence[RankEvidence]) -> set[int]:
    """The ranks that were last seen in a collective, waiting for others."""
    return {rank.rank for rank in _going(ranks) if _waits(rank.beat)}


def are_side_by_side(ranks: Sequence[RankEvidence]) -> bool:
    """Whether all ranks were last seen at the same line of the user's, none of them gone, and none known to do
    something else there than the others: they are slow together, and no rank waits for another in vain."""
    lines = set()
    for rank in ranks:
        frame = innermost_user_frame(rank.beat)
        if frame is None or rank.ended or any(each.kind == PARTED for each in rank.suspicions):
            return False
        lines.add((frame.filename, frame.line))
    return len(lines) == 1


def _going(ranks: Sequence[RankEvidence]) -> list[RankEvidence]:
    return [rank for rank in ranks if rank.beat and not rank.ended]


def _waits(frames: Sequence[Frame]) -> bool:
    """Whether the innermost frames are a collective's, or a backward pass, which waits in C++."""
    inner = frames[-4:]
    return any(
        "/torch/distributed/" in frame.filename
        or frame.filename.endswith("/torch/autograd/graph.py")
        for frame in inner
    )


def last_seen(
    rank: RankEvidence, kind: str, message: Translated, explanation: Translated, language: Language
) -> Failure:
    """A failure drawn where a heartbeat saw the rank last; ``message`` names the rank."""
    return Failure(
        kind=kind,
        rank=rank.rank,
        message=message.filled(rank=rank.rank).in_language(language),
        frames=rank.beat,
        explanation=explanation,
    ).at(innermost_user_frame(rank.beat))


_NOTHING_SEEN = Translated(
    en="time was over before any rank was seen at work",
    zh_cn="到达时限时，还没有观察到任何 rank 开始工作",
)
_WAITED = Translated(
    en="time was over while rank {rank} waited for other ranks here",
    zh_cn="到达时限时，rank {rank} 在此等待其他 rank",
)
_WENT_ON = Translated(
    en="time was over while rank {rank} was here", zh_cn="到达时限时，rank {rank} 正在此处"
)
