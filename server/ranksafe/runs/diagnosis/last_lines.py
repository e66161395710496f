"""The last that each rank of a log had printed before the run failed."""

from __future__ import annotations

from ranksafe.runs.diagnosis.marked_lines import OF_A_FAILURE, rank_reader
from ranksafe.runs.log_text.reader import SaidBy

_LONGEST = 120


def last_lines(said: SaidBy) -> dict[int, str]:
    """What each rank that a line names printed last, without what torch and launchers print of failures."""
    lines = [text.strip() for _, text in said.tail if not OF_A_FAILURE.search(text)]
    read = rank_reader(lines)
    last: dict[int, str] = {}
    for text in lines:
        marked = read(text)
        if marked is not None:
            last[marked[0]] = text[:_LONGEST]
    return last
