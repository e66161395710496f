"""A thread that notes once a second that the rank lives, where its main thread stands and what it waits for.

Without it nothing would be known of a rank that is killed, or that hangs.
"""

from __future__ import annotations

import _thread
import contextlib
import gc
import itertools
import json
import os
import sys
import threading
import time
from types import FrameType
from typing import Any

from . import distributed, exceptions, look, signs, waiting
from .journal import Journal

PERIOD_SECONDS = 1.0
_FRAMES = 60
_EXIT_CHECKS = 50


class _Heartbeat:
    """Started through `_thread`: `threading` would show the script one thread more than it has."""

    def __init__(self, journal: Journal, directory: str, rank: int, is_debugged: bool) -> None:
        self.journal = journal
        self.is_debugged = is_debugged
        self.path = os.path.join(directory, f"rank{rank}.beat")
        self.main = threading.main_thread().ident
        self.signs = signs.Signs(threading.main_thread())
        self.looks = look.Looks(directory, rank, _lines)
        self.running = False
        self.work_done = 0
        self.stop = threading.Event()
        self.done = _thread.allocate_lock()

    def start(self) -> None:
        if self.running or not self.journal.is_mine:
            return
        self.running = True
        self.stop = threading.Event()
        self.done = _thread.allocate_lock()
        self.done.acquire()
        try:
            _thread.start_new_thread(self._run, (self.stop, self.done))
        except RuntimeError:
            # No threads any more: since 3.13 an interpreter that is about to end says so (PythonFinalizationError).
            self.running = False

    def pause(self) -> None:
        """Before a fork: a second thread at that moment can leave locks held in the child (CPython 3.12 warns)."""
        if not self.running or not self.journal.is_mine:
            return
        self.running = False
        before = _system_threads()
        self.stop.set()
        self.done.acquire(timeout=2.0)
        for _ in range(_EXIT_CHECKS):
            if before == 0 or _system_threads() < before:
                return
            time.sleep(0.001)

    def _run(self, stop: threading.Event, done: Any) -> None:
        if self.is_debugged:
            _hide_from_debugger()
        try:
            while not stop.wait(PERIOD_SECONDS):
                # A beat that fails (a full disk) is skipped; the next may work.
                with contextlib.suppress(Exception):
                    self._beat()
                with contextlib.suppress(Exception):
                    self.looks.answer(self.main)
        finally:
            done.release()

    def _beat(self) -> None:
        has_worked = self._has_worked()
        # Who holds a frame keeps its variables alive when it has returned, and with them the memory of tensors.
        frames = {} if has_worked else sys._current_frames()
        collectives = waiting.here.as_data(self.main)
        for each in collectives["now"]:
            if each["thread"] != self.main:
                each["frames"] = _lines(frames.get(each["thread"]))
        of_main = _lines(frames.get(self.main or 0))
        frames.clear()
        beat = {
            "time": time.time(),
            "frames": of_main,
            "group": distributed.group_size(),
            "steps": waiting.here.steps,
            "collectives": collectives,
            "signs": self.signs.read(has_worked=has_worked),
            "cuda": distributed.uses_cuda(),
        }
        temporary = self.path + ".new"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(beat, file)
        os.replace(temporary, self.path)

    def _has_worked(self) -> bool:
        """Whether it is known that the rank has computed something since the last beat."""
        before = self.work_done
        if waiting.here.work is not None:
            self.work_done = waiting.here.work()
        return self.work_done != before


_current: _Heartbeat | None = None


def revive() -> None:
    """Go on after a fork; called wherever the main thread passes through the agent."""
    if _current is not None and not _current.running:
        _current.start()


def stop() -> None:
    """Other processes are the ranks now."""
    global _current
    if _current is not None:
        _current.pause()
    _current = None


def install(journal: Journal, directory: str, rank: int, *, is_debugged: bool = False) -> None:
    """Start the heartbeat; it stands still around forks and does not go on in the child."""
    global _current
    _current = _Heartbeat(journal, directory, rank, is_debugged)
    _current.start()
    os.register_at_fork(before=_current.pause, after_in_parent=_after_fork)


def _after_fork() -> None:
    # Since 3.13 CPython counts threads, to warn, after this function: the next garbage collection starts ours again.
    if sys.version_info < (3, 13):
        revive()
    elif _on_collection not in gc.callbacks:
        gc.callbacks.append(_on_collection)


def _on_collection(phase: str, info: dict[str, int]) -> None:
    if phase == "stop":
        revive()


def _hide_from_debugger() -> None:
    """Beat on while the script stands at a breakpoint. These are the marks that debugpy gives threads of its own."""
    thread: Any = threading.current_thread()
    thread.is_pydev_daemon_thread = thread.pydev_do_not_trace = True


def _system_threads() -> int:
    """Threads as the kernel counts them; 0 where it does not say."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 0


def _lines(frame: FrameType | None) -> list[dict[str, Any]]:
    """The innermost frames, outermost first, without reading sources: this runs every second."""
    lines: list[dict[str, Any]] = []
    for each, line in itertools.islice(exceptions.walk(frame), _FRAMES):
        code = each.f_code
        lines.append({"file": code.co_filename, "line": line, "function": code.co_name})
    return lines[::-1]
