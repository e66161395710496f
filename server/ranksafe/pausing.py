"""Long work that can be left and gone on with, so that other work comes between.

Work passes `pause_point` every few milliseconds. Whoever runs it as `Pausable` gets control back there when a time is
over, does something else, and has the work go on from where it was. The work has a thread of its own, because in Python
nothing else can leave a deep stack of calls; but never do both run at once, so that neither needs a lock. A pause point
stands where nothing that the work shares with others is half done.
"""

from __future__ import annotations

import _thread
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

_Value = TypeVar("_Value")

_RUNNING: ContextVar[Pausable | None] = ContextVar("work of this thread", default=None)


def pause_point() -> None:
    """Let others come between, if this is `Pausable` work whose time is over."""
    work = _RUNNING.get()
    if work is not None and time.perf_counter() >= work.until:
        work.hand_over()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Pause points do nothing inside: something that others use, too, is being made."""
    token = _RUNNING.set(None)
    try:
        yield
    finally:
        _RUNNING.reset(token)


class once(Generic[_Value]):  # noqa: N801
    """As `functools.cached_property`, which up to Python 3.11 locks all objects out while it computes for one of them:
    it would stop for good where another work wants it during a pause."""

    def __init__(self, compute: Callable[[Any], _Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __get__(self, instance: object, owner: type) -> _Value:
        value = instance.__dict__[self._compute.__name__] = self._compute(instance)
        return value


class Abandoned(BaseException):
    """Ends work that nobody wants any more."""


class Pausable:
    """Work that goes on when its owner says so."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._is_started = False
        self._is_abandoned = False
        self._error: BaseException | None = None
        self._own_turn = _held()
        self._others_turn = _held()
        self.is_finished = False
        self.until = 0.0
        """When it pauses next, by `time.perf_counter`."""
        self.seconds = 0.0
        """Of processor time that it has taken."""

    def go_on(self, seconds: float) -> bool:
        """Have it go on for about so long; whether it is finished. Raises what the work raises."""
        if self.is_finished:
            return True
        self.until = time.perf_counter() + seconds
        if self._is_started:
            self._own_turn.release()
        else:
            self._start()
        self._others_turn.acquire()
        if self._error is not None:
            raise self._error
        return self.is_finished

    def abandon(self) -> None:
        """End it where it is: what it was making stays half done."""
        self._is_abandoned = True
        if self._is_started and not self.is_finished:
            self._own_turn.release()
            self._others_turn.acquire()

    def hand_over(self) -> None:
        """Let the owner go on. Only for the work itself."""
        if not self._is_abandoned:
            self.seconds = time.thread_time()
            self._others_turn.release()
            self._own_turn.acquire()
        if self._is_abandoned:
            raise Abandoned

    def _start(self) -> None:
        self._is_started = True
        try:
            _thread.start_new_thread(self._run_in_thread, ())
        except RuntimeError:
            # The system has no more threads: it is done here, in one go.
            self._run()

    def _run_in_thread(self) -> None:
        _RUNNING.set(self)
        self._run()

    def _run(self) -> None:
        try:
            self._work()
        except Abandoned:
            pass
        except BaseException as error:
            self._error = error
        self.is_finished = True
        self.seconds = time.thread_time()
        self._others_turn.release()


def _held() -> _thread.LockType:
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock
