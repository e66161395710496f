"""Signs of life for the heartbeat: whether the main thread runs at all, and if not, whether others work for it.

A thread that computes uses processor time; one that reads from a disk or a network is woken again and again; one that
waits for something that never comes does neither. Linux counts both per thread in ``/proc/self/task/*/schedstat``.
Elsewhere only the processor time of the process is known.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

_POLLERS = (
    "/tqdm/_monitor.py",
    "/wandb/",
    "/tensorboard/",
    "/torch/utils/data/_utils/pin_memory.py",
    "/multiprocessing/resource_tracker.py",
)
"""Threads that wake up regularly whether there is something to do or not."""
_MOST = 60


class Signs:
    """Of this process; read by one thread."""

    def __init__(self, main: threading.Thread) -> None:
        self.main = main
        self.before: list[int] | None = None

    def read(self, *, has_worked: bool) -> dict[str, Any]:
        """``main``: nanoseconds of processor time and times scheduled, or null; ``cpu``: seconds of all other threads,
        ours left out. ``others``: what else lives, told while the main thread rests and nobody is known to work."""
        main = _scheduled(f"/proc/self/task/{self.main.native_id}/schedstat")
        rests = main is not None and main == self.before
        self.before = main
        cpu = time.process_time() - time.thread_time()
        return {
            "main": main,
            "cpu": cpu,
            "others": self._others() if rests and not has_worked else None,
        }

    def _others(self) -> dict[str, Any]:
        main = self.main.native_id
        return {
            "disk": _state(f"/proc/self/task/{main}/stat") == "D",
            "threads": self._threads(),
            "children": children(os.getpid()),
        }

    def _threads(self) -> list[list[int]]:
        """Python's other threads, but for those that only poll: id, nanoseconds, times scheduled."""
        found = []
        # Not held while files are read: a frame that has returned keeps its variables, and so the memory of tensors.
        looked_at = {ident for ident, frame in sys._current_frames().items() if not _polls(frame)}
        for thread in threading.enumerate()[:_MOST]:
            if thread is self.main or thread.ident not in looked_at:
                continue
            counted = _scheduled(f"/proc/self/task/{thread.native_id}/schedstat")
            if counted is not None:
                found.append([thread.native_id or 0, *counted])
        return found


def children(pid: int) -> list[list[int]] | None:
    """Living processes below ``pid``: id, ticks of processor time, times scheduled, 1 while waiting for a disk. None
    where the system does not tell."""
    found: list[list[int]] = []
    todo = [pid]
    while todo and len(found) < _MOST:
        parent = todo.pop()
        try:
            tasks = os.listdir(f"/proc/{parent}/task")
        except OSError:
            if parent == pid:
                return None
            continue
        switches = 0
        for task in tasks[:_MOST]:
            base = f"/proc/{parent}/task/{task}/"
            todo += [int(child) for child in _text(base + "children").split()]
            if parent != pid:
                switches += (_scheduled(base + "schedstat") or [0, 0])[1]
        fields = _text(f"/proc/{parent}/stat").rpartition(")")[2].split()
        if parent != pid and len(fields) > 12 and fields[0] != "Z":
            ticks = int(fields[11]) + int(fields[12])
            found.append([parent, ticks, switches, int(fields[0] == "D")])
    return found


def _polls(frame: Any) -> bool:
    for _ in range(12):
        if frame is None:
            return False
        if any(part in frame.f_code.co_filename for part in _POLLERS):
            return True
        frame = frame.f_back
    return False


def _scheduled(path: str) -> list[int] | None:
    """Nanoseconds on a processor and times put there; the middle number, time spent queueing, says nothing."""
    fields = _text(path).split()
    return [int(fields[0]), int(fields[2])] if len(fields) == 3 else None


def _state(path: str) -> str:
    return (_text(path).rpartition(")")[2].split() or [""])[0]


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
