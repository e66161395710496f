"""What only a log as a whole can tell of a failure: its last complaint, its raw end, the task that Slurm names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ranksafe.runs.diagnosis.loose_tracebacks import rank_in_record
from ranksafe.runs.explain.printed import last_complaint
from ranksafe.runs.explain.slurm_tasks import failed_task, tasks_are_ranks
from ranksafe.runs.log_text.reader import SaidBy
from ranksafe.runs.model import Failure

_REPORT = re.compile(
    r"^\[rank\d+\]: Traceback|failed \(exitcode: |ChildFailedError|Sending process \d+ closing signal"
)
_OF_A_TASK = frozenset({"host-out-of-memory", "fatal-signal", "killed"})
_UNKNOWN = frozenset({"launcher", "exit-status", "exception"})
_TAIL_SHOWN = 12


def facts_of_the_whole(failure: Failure, said: SaidBy, launcher: str) -> Iterator[str]:
    """What the raw end of the log, and what launchers and schedulers said, show next to a failure."""
    failed = failed_task(launcher) if failure.rank is None or failure.rank < 0 else None
    if failed is not None:
        yield f"Slurm names task {failed[0]} on node {failed[1]}"
    if failure.kind == "exit-status" and not failure.frames:
        complaint = _complaint(failure, said)
        before = "something was printed before" if _before_report(said) else "nothing was printed"
        yield f"last complaint: {complaint}" if complaint else before


def finished(failure: Failure, said: SaidBy, launcher: str) -> Failure:
    """The failure with the rank that Slurm names, and the raw end where nothing is known."""
    if failure.root_cause and failure.kind in _UNKNOWN and not failure.frames:
        failure = replace(failure, excerpt=_end_of(said))
    if failure.rank is not None and failure.rank >= 0:
        return failure
    failed = failed_task(launcher) if failure.root_cause and failure.kind in _OF_A_TASK else None
    rank = failed[0] if failed and tasks_are_ranks(launcher) else None
    return replace(failure, rank=rank)


def _complaint(failure: Failure, said: SaidBy) -> str | None:
    """The last before the launcher's report that is not another rank's, where nothing else is known of the end."""
    if failure.kind != "exit-status" or failure.frames:
        return None
    ranks = (None, failure.rank)
    before = _before_report(said)
    return last_complaint(
        [line for line in before if failure.rank is None or rank_in_record(line) in ranks]
    )


def _end_of(said: SaidBy) -> tuple[str, ...]:
    """The raw last lines, without the launcher's report on them if there are others."""
    return tuple(_before_report(said) or [text.rstrip() for _, text in said.tail][-_TAIL_SHOWN:])


def _before_report(said: SaidBy) -> list[str]:
    """The raw last lines up to the launcher's report; none where that is all there is."""
    lines = [text.rstrip() for _, text in said.tail]
    report = next((at for at, text in enumerate(lines) if _REPORT.search(text)), len(lines))
    return lines[:report][-_TAIL_SHOWN:]
