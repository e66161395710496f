"""Runs that failed and were started anew: by torchrun itself, or by a script around the launcher."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from ranksafe.runs.diagnosis.survived import went_on
from ranksafe.runs.log_text.reader import Line, SaidBy, Stream

_SAW: Final = "failed (exitcode: "
_REPORTED = (
    "ChildFailedError",
    "exitcode  :",
    "returned non-zero exit status",
    "died with <Signals",
)
_AGAIN = re.compile(
    r"\bretry|\b(?:try|attempt) ?#?\d|\brestart|\brelaunch|\bresum(?:ing|ed) (?:from|at|training)|\btry(?:ing)? again",
    re.IGNORECASE,
)


def is_recovered(said: SaidBy) -> bool:
    """Whether the ranks went on after the last failure that torchrun saw, and it gave no report in the end: it had
    started them anew, which it says at a level that is not shown."""
    failed = [number for lines in said.others for number, text in lines if _SAW in text]
    return bool(failed) and _last_report(said) is None and went_on(max(failed), said)


def last_attempt(said: SaidBy) -> SaidBy:
    """The log without what came before the last start, where a launcher gave its report, something says after it
    that the run is tried again, and steps follow."""
    reported = _last_report(said)
    if reported is None or not went_on(reported, said):
        return said
    if not any(_AGAIN.search(text) for number, text in said.tail if number > reported):
        return said
    ranks = {rank: _after(reported, lines) for rank, lines in said.ranks.items()}
    return replace(
        said,
        ranks={rank: lines for rank, lines in ranks.items() if lines},
        others=[_after(reported, lines) for lines in said.others],
        tail=_after(reported, said.tail),
        uncaught={
            rank
            for rank in said.uncaught
            if any("Traceback" in text for _, text in ranks.get(rank, ()))
        },
    )


def _last_report(said: SaidBy) -> int | None:
    """The number of the last line of a launcher's report."""
    return max(
        (
            number
            for lines in said.others
            for number, text in lines
            if any(word in text for word in _REPORTED)
        ),
        default=None,
    )


def _after(at: int, lines: Iterable[Line]) -> Stream:
    return Stream(line for line in lines if line[0] > at)
