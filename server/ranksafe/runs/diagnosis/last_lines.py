"""The last that each rank of a log had printed before the run failed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ranksafe.runs.diagnosis.loose_tracebacks import rank_in_record
from ranksafe.runs.log_text.reader import SaidBy

_OF_A_FAILURE = re.compile(
    r"^(?:\[default\d+\]:)?\[rank\d+\]:|local_rank|exitcode|Error\b|Exception\b|Traceback|Warning\b|SIG[A-Z]{3}"
)
_OF_SIZE = re.compile(r"[\[(](?P<rank>\d{1,3})/(?P<size>[1-9]\d{0,2})[\])]")
_LONGEST = 120


def last_lines(said: SaidBy) -> dict[int, str]:
    """What each rank that a line names printed last, without what torch and launchers print of failures."""
    lines = [text.strip() for _, text in said.tail if not _OF_A_FAILURE.search(text)]
    of_size = _rank_of_size(lines)
    last: dict[int, str] = {}
    for text in lines:
        rank = rank_in_record(text)
        rank = of_size(text) if rank is None else rank
        if rank is not None:
            last[rank] = text[:_LONGEST]
    return last


def _rank_of_size(lines: Sequence[str]) -> Callable[[str], int | None]:
    """Reads marks such as ``[0/2]``, if the log has one of every rank and none that is no rank's."""
    found = [match for text in lines if (match := _OF_SIZE.search(text))]
    sizes = {int(match["size"]) for match in found}
    ranks = {int(match["rank"]) for match in found}
    if len(sizes) != 1 or ranks != set(range(*sizes)):
        return _of_no_rank

    def rank_of(text: str) -> int | None:
        mark = _OF_SIZE.search(text)
        return int(mark["rank"]) if mark else None

    return rank_of


def _of_no_rank(_: str) -> int | None:
    return None
