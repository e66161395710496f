"""What may be said of a run that has not ended: the launcher still ends the other ranks, and more may come.

The first rank's end tells most of what the whole run will, seconds earlier. But a rank that lost its connection knows
nothing of the cause, and one that is alive may yet fail: only what nothing that comes can change is certain.
"""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.runs.explain.deaths import Death, Ending
from ranksafe.runs.explain.evidence import Evidence


def is_certain(root: Death | None, deaths: Sequence[Death], evidence: Evidence) -> bool:
    """Whether ``root``, a cause of its own if any, will still be blamed when the run has ended.

    Every rank must be known and watched, and of each that has ended it must be known how: a launcher that collected a
    process first has its status for itself until its report.
    """
    if root is None or not _is_over(root):
        return False
    if len(evidence.ranks) < (evidence.expected_ranks or 1):
        return False
    return all(
        death.rank.watched and not (death.rank.gone and death.ending is Ending.UNKNOWN)
        for death in deaths
    )


def _is_over(death: Death) -> bool:
    """Whether nothing keeps the rank alive. Python's own teardown after an exception, which takes seconds where torch
    has much to give back, need not be waited for; a call of `sys.exit` may have been caught."""
    return death.rank.gone or (death.ending is Ending.RAISED and death.rank.ended)


def without_the_living(evidence: Evidence) -> None:
    """Take out of ``evidence`` what does not end a rank that lives: handled errors, an exit that may be caught."""
    evidence.going_on = True
    for rank in evidence.ranks.values():
        if rank.gone or rank.raised is not None:
            continue
        rank.thread_errors, rank.errors, rank.fatal = [], "", ()
        rank.os_exit, rank.asked_exit = None, None
