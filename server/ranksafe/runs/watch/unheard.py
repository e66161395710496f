"""Ranks whose heartbeat has fallen silent while other ranks are heard.

The heartbeat is a thread of the rank: it cannot speak while the process is stopped, nor while compiled code holds
Python's lock. The second may be hard work, so silence alone means nothing: the system has to say that the process
rests.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass

from ranksafe.runs.process_status import status_fields

_LONGEST_GAP_SECONDS = 2.0
_SHARE_OF_WAITING = 0.02
"""Threads that wait for Python's lock look for it 200 times a second (CPython 3.11, ``sys.getswitchinterval``)."""
_UNCOUNTED_TICKS = 20
_WORKS_OR_IS_DEBUGGED = frozenset("DtZX")


@dataclass(slots=True)
class _Process:
    pid: int
    started: int
    rests: float = 0.0
    ticks_before: int = 0


class Unheard:
    """How long each rank of this machine has been silent and at rest."""

    def __init__(self) -> None:
        self._processes: dict[int, _Process] = {}
        self._last_news: float | None = None
        self._ticks_per_second = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100

    def started(self, rank: int, pid: int) -> None:
        """A rank's process. Where the system tells nothing of processes (no ``/proc``), its silence never counts."""
        activity = _activity(pid)
        if activity is not None:
            self._processes[rank] = _Process(pid, activity[1])

    def look(self, heard: Collection[int], now: float) -> None:
        """Take note of the ranks heard since the last look; ``now`` in seconds of a clock that never jumps.

        Only time in which another rank was heard counts: where nobody is, the line is cut or the machine slept.
        """
        if not heard:
            return
        passed = (
            0.0 if self._last_news is None else min(now - self._last_news, _LONGEST_GAP_SECONDS)
        )
        self._last_news = now
        for rank, process in self._processes.items():
            if rank in heard:
                process.rests = 0.0
            else:
                self._count(process, passed)

    def seconds(self, rank: int) -> float:
        """For how long a rank has said and done nothing; 0 where that is not known."""
        process = self._processes.get(rank)
        return 0.0 if process is None else process.rests

    def _count(self, process: _Process, passed: float) -> None:
        activity = _activity(process.pid)
        if (
            activity is None
            or activity[1] != process.started
            or activity[0] in _WORKS_OR_IS_DEBUGGED
        ):
            process.rests = 0.0
            return
        ticks = activity[2]
        if process.rests == 0.0:
            process.ticks_before = ticks
        process.rests += passed
        idle = _SHARE_OF_WAITING * process.rests * self._ticks_per_second + _UNCOUNTED_TICKS
        if ticks - process.ticks_before > idle:
            process.rests = 0.0


def _activity(pid: int) -> tuple[str, int, int] | None:
    """A process's state, when it began and its processor time, both in ticks; None where the system does not tell."""
    fields = status_fields(pid) or []
    try:
        return fields[0], int(fields[19]), int(fields[11]) + int(fields[12])
    except (IndexError, ValueError):
        return None
