"""What only a log as a whole can tell of a failure: its last complaint, its raw end, the task that Slurm names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ranksafe.runs.diagnosis.loose_tracebacks import rank_in_record
from ranksafe.runs.explain.deaths import signal_name
from ranksafe.runs.explain.printed import last_complaint
from ranksafe.runs.explain.slurm_tasks import failed_task, tasks_are_ranks
from ranksafe.runs.log_text.reader import SaidBy
from ranksafe.runs.model import Failure

_REPORT = re.compile(
    r"^\[rank\d+\]: Traceback|failed \(exitcode: |ChildFailedError|Sending process \d+ closing signal"
)
_OF_A_TASK = frozenset({"host-out-of-memory", "fatal-signal", "killed"})
_UNKNOWN = frozenset({"launcher", "exit-status", "exception"})
_STATUSES = 256
_HANDED_ON = re.compile(r"\b(?:code|status)[ :=]+(?P<code>25[02]|24[15]|247)\b")
"""256 less SIGABRT, SIGILL, SIGTERM, SIGSEGV or SIGKILL: what becomes of a negative status in ``sys.exit``."""
_TIMED_OUT = re.compile(r"\b(?:exit|rc|status|code)\b\W{0,3}124\b", re.IGNORECASE)
"""timeout(1) of GNU coreutils, when the time is over."""
_LOST_ARGUMENT = re.compile(
    r"^(?:\S+: )*(?:line \d+: )?(?P<argument>--?[A-Za-z][\w-]*): (?:command )?not found"
)
"""A shell's complaint (bash, dash, zsh) about an argument that it took for a command."""
_PRINTED_AT = re.compile(r"(?:^|[\s\[(])(?P<file>[\w./-]*\w\.py):(?P<line>\d+)[\])]?(?=[\s:]|$)")
"""Where a logger says that its caller stands."""
_TAIL_SHOWN = 12


def with_complaint(failure: Failure, said: SaidBy) -> Failure:
    """A failure of which only the status is known, where the last complaint before it says that it stands."""
    complaint = _complaint(failure, said)
    at = None if complaint is None else _PRINTED_AT.search(complaint)
    return failure if at is None else replace(failure, filename=at["file"], line=int(at["line"]))


def facts_of_the_whole(failure: Failure, said: SaidBy, launcher: str) -> Iterator[str]:
    """What the raw end of the log, and what launchers and schedulers said, show next to a failure."""
    failed = failed_task(launcher) if failure.rank is None or failure.rank < 0 else None
    if failed is not None:
        yield f"Slurm names task {failed[0]} on node {failed[1]}"
    if failure.kind == "exit-status" and not failure.frames:
        complaint = _complaint(failure, said)
        before = "something was printed before" if _before_report(said) else "nothing was printed"
        yield f"last complaint: {complaint}" if complaint else before
    for _, text in said.tail:
        if lost := _LOST_ARGUMENT.match(text):
            yield f"taken for a command: {lost['argument']}"
        if _TIMED_OUT.search(text):
            yield "status 124"
    if handed_on := _HANDED_ON.search(failure.message):
        code = int(handed_on["code"])
        yield f"{code} stands for {signal_name(code - _STATUSES)}"


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
