"""A thread that notes once a second that the rank lives and where its main thread stands.

Without it nothing would be known of a rank that is killed, or that hangs.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from types import FrameType
from typing import Any

from . import distributed
from .journal import Journal

PERIOD_SECONDS = 1.0
_FRAMES = 60


class _Heartbeat:
    def __init__(self, journal: Journal, path: str) -> None:
        self.journal = journal
        self.path = path
        self.main = threading.main_thread().ident
        self.stop = threading.Event()
        self.thread: threading.Thread | None = None

    def start(self) -> None:
        self.stop.clear()
        self.thread = threading.Thread(target=self._run, name="ranksafe-heartbeat", daemon=True)
        self.thread.start()

    def pause(self) -> None:
        """Before a fork: a second thread at that moment can leave locks held in the child (CPython 3.12 warns)."""
        if self.thread is not None and self.journal.is_mine:
            self.stop.set()
            self.thread.join(2.0)

    def _run(self) -> None:
        while not self.stop.wait(PERIOD_SECONDS):
            # A beat that fails (a full disk) is skipped; the next may work.
            with contextlib.suppress(Exception):
                self._beat()

    def _beat(self) -> None:
        frame = sys._current_frames().get(self.main or 0)
        beat = {"time": time.time(), "frames": _lines(frame), "group": distributed.group_size()}
        temporary = self.path + ".new"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(beat, file)
        os.replace(temporary, self.path)


def install(journal: Journal, directory: str, rank: int) -> None:
    """Start the heartbeat; it stands still around forks and does not go on in the child."""
    heartbeat = _Heartbeat(journal, os.path.join(directory, f"rank{rank}.beat"))
    heartbeat.start()

    def resume() -> None:
        if journal.is_mine:
            heartbeat.start()

    os.register_at_fork(before=heartbeat.pause, after_in_parent=resume)


def _lines(frame: FrameType | None) -> list[dict[str, Any]]:
    """The innermost frames, outermost first, without reading sources: this runs every second."""
    lines: list[dict[str, Any]] = []
    while frame is not None and len(lines) < _FRAMES:
        code = frame.f_code
        lines.append({"file": code.co_filename, "line": frame.f_lineno, "function": code.co_name})
        frame = frame.f_back
    return lines[::-1]
