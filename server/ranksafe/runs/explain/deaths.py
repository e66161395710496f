"""How each rank ended, before anything is said about why."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, replace
from enum import Enum

from ranksafe.localization import Translated
from ranksafe.runs.explain.evidence import Evidence, Raised, RankEvidence
from ranksafe.runs.explain.launcher_report import LauncherReport
from ranksafe.runs.explain.locate import innermost_user_frame
from ranksafe.runs.explain.signatures import Signature, match

_WATCHDOG = frozenset({"collective-timeout", "watchdog-stuck"})
_VAGUE = frozenset({"worker-died"})
"""Kinds that say only that something ended: what they were raised from may say why."""
_OWN_ABORT = re.compile(
    r"^(?:free|malloc|realloc)\(\): |^corrupted |double free or corruption|: Assertion `[^`]*' failed\.$",
    re.MULTILINE,
)
"""glibc's last words before it aborts a process."""


CRASHES = frozenset(
    {-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE}
)
"""Statuses of processes that compiled code ended."""


class Ending(str, Enum):
    """The ways a rank ends, the likeliest causes of a failed run first."""

    RAISED = "raised"
    """An exception of its own."""
    SILENT = "silent"
    """Died without a word: killed, os._exit, a fatal signal, a bare exit status."""
    PEER_LOST = "peer-lost"
    """An exception that only tells of another rank's end."""
    STOPPED = "stopped"
    """Ended by the launcher because of another rank."""
    FINISHED = "finished"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Death:
    """One rank's ending."""

    rank: RankEvidence
    ending: Ending
    time: float
    raised: Raised | None = None
    known: tuple[Signature, Translated] | None = None
    exit: int | None = None


def deaths_of(evidence: Evidence, report: LauncherReport) -> list[Death]:
    """Every rank's ending, in the order of ranks."""
    deaths = [_death(rank, evidence, report) for _, rank in sorted(evidence.ranks.items())]
    if evidence.going_on or any(death.ending is Ending.PEER_LOST for death in deaths):
        deaths = [_as_finished(death) for death in deaths]
    if not any(death.known and death.known[0].kind in _WATCHDOG for death in deaths):
        return deaths
    if _OWN_ABORT.search(evidence.launcher):
        return deaths
    return [_as_aborted(death) for death in deaths]


def is_crash(death: Death) -> bool:
    """Whether compiled code ended the process."""
    return (death.exit or 0) in CRASHES


def _as_finished(death: Death) -> Death:
    """A rank whose script had ended left the others behind, whatever became of its process in its teardown: gloo's
    threads may abort one that goes without destroying its group, and a launcher stops one that is slow to go."""
    gone = death.ending is Ending.STOPPED or (death.ending is Ending.SILENT and is_crash(death))
    if gone and death.rank.ended and not death.rank.asked_exit:
        return replace(death, ending=Ending.FINISHED)
    return death


def _as_aborted(death: Death) -> Death:
    """NCCL's watchdog ends a rank by SIGABRT after a timeout, so that signal is no cause where others tell of one."""
    by_watchdog = death.ending is Ending.SILENT and death.exit == -signal.SIGABRT
    by_watchdog = by_watchdog and not _OWN_ABORT.search(death.rank.errors)
    return replace(death, ending=Ending.STOPPED) if by_watchdog or _left_bare(death) else death


def _left_bare(death: Death) -> bool:
    """Whether it left with the status of an exception that is not in the log: after a timeout, most likely the same."""
    rank = death.rank
    told = rank.exit_frames or rank.os_exit is not None or rank.asked_exit is not None
    return death.ending is Ending.SILENT and death.exit == 1 and not told


def _death(rank: RankEvidence, evidence: Evidence, report: LauncherReport) -> Death:
    exit_status = _exit_of(rank, evidence, report)
    time = rank.last_seen or 0.0
    if rank.raised is not None:
        known = known_failure(rank.raised, evidence)
        lost = known is not None and known[0].secondary
        ending = Ending.PEER_LOST if lost else Ending.RAISED
        return Death(rank, ending, rank.raised_at or time, rank.raised, known, exit_status or 1)
    if rank.os_exit is not None:
        ending = Ending.SILENT if rank.os_exit else Ending.FINISHED
        return Death(rank, ending, time, exit=rank.os_exit)
    # torchrun follows its SIGTERM with a SIGKILL when a rank takes too long to leave.
    was_told = rank.pid in report.stopped_pids and (exit_status is None or exit_status < 0)
    if was_told or exit_status == -signal.SIGTERM:
        return Death(rank, Ending.STOPPED, time, exit=exit_status)
    if rank.ended and (exit_status == 0 or (exit_status is None and not rank.asked_exit)):
        return Death(rank, Ending.FINISHED, time, exit=0)
    if exit_status or rank.asked_exit:
        return Death(rank, Ending.SILENT, time, exit=exit_status or rank.asked_exit)
    ending = Ending.FINISHED if exit_status == 0 else Ending.UNKNOWN
    return Death(rank, ending, time, exit=exit_status)


def _exit_of(rank: RankEvidence, evidence: Evidence, report: LauncherReport) -> int | None:
    status = report.exits.get(rank.rank)
    listed = report.pids.get(rank.local_rank)
    if status is None and rank.pid is not None and listed in (None, rank.pid):
        # Else it is the rank of that number on another node, or of a log, which does not tell local ranks.
        status = report.exits.get(rank.local_rank)
    if status is None and len(evidence.ranks) == 1:
        status = report.only_exit if report.only_exit is not None else evidence.returncode
    if status is None and rank.pid not in report.stopped_pids:
        status = rank.exit
    if status is None and evidence.returncode == 0:
        status = 0
    return status


def known_failure(
    raised: Raised, evidence: Evidence | None = None
) -> tuple[Signature, Translated] | None:
    """The signature of the exception, or else of the first one of its chain that is known.

    What was merely being handled when another error came (``__context__``) explains nothing by itself.
    """
    explicit = [raised, *_causes(raised)]
    around = [frame for each in explicit for frame in each.frames]
    vague: tuple[Signature, Translated] | None = None
    for each in explicit:
        known = match(
            each.text,
            each.frames,
            innermost_user_frame(each.frames),
            around=around,
            evidence=evidence,
        )
        if known is not None and known[0].kind not in _VAGUE:
            return known
        vague = vague or known
    return vague


def _causes(raised: Raised) -> list[Raised]:
    found: list[Raised] = []
    for origin in (raised.cause, *raised.group):
        if origin is not None:
            found += [origin, *_causes(origin)]
    return found


def signal_name(status: int) -> str:
    """``SIGKILL`` for -9."""
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
