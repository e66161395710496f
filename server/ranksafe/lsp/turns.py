"""Long work of the server, a little of it at a time, so that messages are read in between and other work is done first.

What has taken least so far goes first: a small file never waits for a large one. Of those that took the same, what was
asked for last, because somebody looks at it. Nothing here waits for the work: it goes on in the loop's own time, and
whatever becomes of one piece, the next turn comes.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from ranksafe.pausing import Pausable

logger = logging.getLogger(__name__)

TURN_SECONDS: Final = 0.01
"""After so long messages are read."""

_Result = TypeVar("_Result")


@dataclass(eq=False, slots=True)
class Job:
    """Steps that are done one after the other. What stands between them, and `ended`, is done in the loop's thread."""

    steps: Iterator[Callable[[], object]]
    ended: Callable[[Exception | None], None]
    seconds: float = 0.0
    """Of processor time that the steps behind it took."""
    _step: Pausable | None = None

    @property
    def taken(self) -> float:
        """Seconds of processor time so far."""
        return self.seconds + (0.0 if self._step is None else self._step.seconds)

    def go_on(self, seconds: float) -> bool:
        """Go on for about so long; whether it is finished. Raises what a step raises."""
        if self._step is None:
            step = next(self.steps, None)
            if step is None:
                return True
            self._step = Pausable(step)
        if self._step.go_on(seconds):
            self.seconds += self._step.seconds
            self._step = None
        return False

    def abandon(self) -> None:
        """End it where it is."""
        step, self._step = self._step, None
        self.steps = iter(())
        if step is not None:
            step.abandon()


class Turns:
    """All long work of one server."""

    def __init__(self) -> None:
        self._jobs: list[Job] = []
        """What was asked for last is last."""
        self._next: asyncio.Handle | None = None
        self._waiting: set[asyncio.Future[Any]] = set()
        self._has_ended = False

    def start(
        self, steps: Iterator[Callable[[], object]], ended: Callable[[Exception | None], None]
    ) -> Job:
        """Have work done; ``ended`` is called when it is, or has failed, but not where it was abandoned."""
        job = Job(steps, ended)
        self._jobs.append(job)
        self._take_turns()
        return job

    def prefer(self, job: Job) -> None:
        """It is as if it had been asked for now."""
        self._jobs.remove(job)
        self._jobs.append(job)

    def abandon(self, job: Job) -> None:
        """Nobody wants it any more."""
        self._jobs.remove(job)
        job.abandon()

    async def result(self, compute: Callable[[], _Result]) -> _Result:
        """What a function gives, computed in turns; abandoned with the request that waits for it."""
        waiting: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        results: list[_Result] = []

        def ended(error: Exception | None) -> None:
            if waiting.done():
                return
            if error is None:
                waiting.set_result(results[0])
            else:
                waiting.set_exception(error)

        job = self.start(iter([lambda: results.append(compute())]), ended)
        try:
            return await waiting
        finally:
            self._waiting.discard(waiting)
            if job in self._jobs:
                self.abandon(job)

    def end(self) -> None:
        """Leave everything as it is, for good: the client goes away."""
        self._has_ended = True
        for waiting in self._waiting:
            waiting.cancel()
        if self._next is not None:
            self._next.cancel()
            self._next = None
        while self._jobs:
            self._jobs.pop().abandon()

    def _take_turns(self) -> None:
        if self._next is None and self._jobs and not self._has_ended:
            self._next = asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._next = None
        until = time.perf_counter() + TURN_SECONDS
        try:
            while self._jobs and (left := until - time.perf_counter()) > 0:
                job = min(reversed(self._jobs), key=lambda job: job.taken)
                self._go_on(job, left)
        finally:
            self._take_turns()

    def _go_on(self, job: Job, seconds: float) -> None:
        error = None
        try:
            with no_garbage_collection():
                if not job.go_on(seconds):
                    return
        except Exception as raised:
            error = raised
        # A step may have ended everything.
        if job in self._jobs:
            self._jobs.remove(job)
        try:
            job.ended(error)
        except Exception:
            logger.exception("what follows from a piece of work failed")


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Cyclic collection during an analysis costs up to ten times the analysis; it runs when typing pauses."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
