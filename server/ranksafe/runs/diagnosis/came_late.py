"""A rank that was still at work when the others' patience ended, and that came to the collective after that."""

from __future__ import annotations

from dataclasses import replace

from ranksafe.localization import Translated, both
from ranksafe.runs.diagnosis.common_failure import kind_of
from ranksafe.runs.diagnosis.marked_lines import OF_A_FAILURE, rank_reader
from ranksafe.runs.explain.evidence import Evidence
from ranksafe.runs.log_text.reader import SaidBy
from ranksafe.runs.model import Failure

_TIMEOUT = "collective-timeout"
_LOST = "peer-lost"
_LONGEST = 120


def with_late_rank(failure: Failure, evidence: Evidence, said: SaidBy) -> Failure:
    """A timeout with the only rank that had not failed when it ran out, and with what that rank printed meanwhile.

    What a rank printed between the others' timeout and its own traceback was not held back in a buffer: that would
    come after the traceback, when the process ends.
    """
    if failure.kind != _TIMEOUT or not failure.root_cause or failure.rank is None:
        return failure
    waited = evidence.ranks.get(failure.rank)
    if waited is None or waited.raised_at is None or waited.raised_at < 0:
        return failure
    late = {
        number: rank.raised_at
        for number, rank in evidence.ranks.items()
        if rank.raised is not None
        and rank.raised_at is not None
        and rank.raised_at > waited.raised_at
        and kind_of(rank.raised) == _LOST
    }
    if len(late) != 1:
        return failure
    ((number, ended),) = late.items()
    lines = [line for line in said.tail if not OF_A_FAILURE.search(line[1])]
    read = rank_reader([text for _, text in lines])
    meanwhile = [
        text.strip()
        for at, text in lines
        if waited.raised_at < at < ended and (marked := read(text)) and marked[0] == number
    ]
    if not meanwhile:
        return failure
    told = _LATE.filled(rank=number, line=meanwhile[-1][:_LONGEST])
    return replace(failure, explanation=both(told, failure.explanation))


_LATE = Translated(
    en="Rank {rank} was still at work when the others' timeout ran out, and came after that: until then it printed "
    '"{line}". Let every rank do a part of that work, do it outside of the collectives, or raise the group\'s timeout.',
    zh_cn="其他 rank 超时的时候，rank {rank} 仍在工作，之后才到达：在此期间它打印了“{line}”。请让每个 rank 分担该工作，"
    "把它移到集合通信之外，或延长进程组的超时。",
)
