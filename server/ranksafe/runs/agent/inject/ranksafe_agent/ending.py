"""How the process ends: uncaught exceptions, exceptions of threads, sys.exit, os._exit, a clean end."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import traceback
from types import TracebackType
from typing import Any, NoReturn

from . import distributed, exceptions
from .journal import Journal

_ATTEMPTS = 3
"""A signal handler may raise in the midst of our work: the DataLoader's does when it hears of a worker's death."""


class _Ending:
    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.recorded: int | None = None
        """The identity of the main thread's exception, which `sys.last_value` keeps alive; a thread's may be reused."""
        self.failed = False
        self.asked_exit: dict[str, Any] | None = None
        self.leave = os._exit
        """The interpreter's own, not our stand-in."""

    def exception(self, error: BaseException | None, thread: str | None = None) -> None:
        """Write ``error`` down once; never raises."""
        if error is None or (thread is None and id(error) == self.recorded):
            return
        if thread is None:
            self.recorded = id(error)
        self.failed = True
        trouble = ""
        for _ in range(_ATTEMPTS):
            try:
                self.journal.write(
                    "exception",
                    thread=thread,
                    exception=exceptions.describe(error),
                    group=distributed.group_size(),
                )
                return
            except Exception as problem:
                trouble = repr(problem)
        self.journal.write("agent-problem", text=trouble)


_current: _Ending | None = None


def record(error: BaseException) -> None:
    """Write down what ended the rank's program but is caught by whoever called it."""
    if _current is not None:
        _current.exception(error)


def install(journal: Journal) -> None:
    """Set the hooks, each calling what was there before."""
    global _current
    ending = _current = _Ending(journal)
    _hook_exceptions(ending)
    _hook_threads(ending)
    _hook_sys_exit(ending)
    _hook_os_exit(ending)
    atexit.register(_at_exit, ending)


def _hook_exceptions(ending: _Ending) -> None:
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        ending.exception(error)
        before(kind, error, trace)

    sys.excepthook = hook


def _hook_threads(ending: _Ending) -> None:
    before = threading.excepthook

    def hook(arguments: Any) -> None:
        if arguments.exc_type is not SystemExit:
            ending.exception(arguments.exc_value, getattr(arguments.thread, "name", "thread"))
        before(arguments)

    threading.excepthook = hook


def _hook_sys_exit(ending: _Ending) -> None:
    """SystemExit reaches no hook and an exit handler cannot see its status, so the call itself is noted."""
    leave = sys.exit

    def exit(status: Any = None, /) -> NoReturn:  # noqa: A001 - stands in for sys.exit
        try:
            ending.asked_exit = {"status": _status(status), "frames": _stack()}
        except Exception:
            ending.asked_exit = None
        leave(status)

    exit.__doc__ = leave.__doc__
    sys.exit = exit


def _hook_os_exit(ending: _Ending) -> None:
    leave = os._exit

    def _exit(status: int) -> NoReturn:
        try:
            ending.journal.write("os-exit", status=status, frames=_stack())
        finally:
            leave(status)

    _exit.__doc__ = leave.__doc__
    os._exit = _exit


def _at_exit(ending: _Ending) -> None:
    # A library that replaced sys.excepthook without calling the one before it (rich does) leaves the exception here.
    ending.exception(getattr(sys, "last_value", None))
    ending.journal.write(
        "exit",
        clean=not ending.failed and ending.asked_exit is None,
        asked=ending.asked_exit,
        group=distributed.group_size(),
    )
    if (
        ending.journal.is_mine
        and ending.journal.ended_early
        and not ending.failed
        and ending.asked_exit is None
    ):
        _leave_now(ending)


def _leave_now(ending: _Ending) -> None:
    """End a smoke run here: the program was stopped before it could destroy its process group, and torch's teardown
    of a live gloo group now and then aborts ("terminate called without an active exception", torch 2.13.0)."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            continue
    ending.leave(0)


def _stack() -> list[dict[str, Any]]:
    summary = traceback.StackSummary.extract(exceptions.walk(sys._getframe(2)), lookup_lines=False)
    summary.reverse()
    return exceptions.frames_as_data(list(summary))


def _status(status: Any) -> int:
    """The exit status CPython makes of ``sys.exit``'s argument."""
    if status is None:
        return 0
    return status if isinstance(status, int) else 1
