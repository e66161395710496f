"""A log explained while it is still coming: the failure as soon as it is certain, everything at the end."""

from __future__ import annotations

import time
from collections.abc import Callable

from ranksafe.localization import Language
from ranksafe.runs.diagnosis.diagnose import diagnose_said, ended_badly
from ranksafe.runs.log_text.reader import LogReader
from ranksafe.runs.model import Failure

_PAUSE = 0.5
"""Seconds without anything new to learn before the log so far is looked at: a traceback comes in pieces."""
_LONGEST_WAIT = 2.0
_SHARE = 10
"""Looking may take this part of the time."""


class FollowedLog:
    """Feed it bytes, and ask now and then whether a failure is certain.

    A traceback alone is not certain: scripts catch errors and go on. It is once torch's own excepthook printed it, or a
    launcher or scheduler says that a rank failed. What only follows from another rank's end never is.
    """

    def __init__(
        self, language: Language = "en", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.reader = LogReader()
        """What has come so far."""
        self._language: Language = language
        self._clock = clock
        self._seen = 0
        self._changed_at = 0.0
        self._first_change_at: float | None = None
        self._not_before = 0.0
        self.announced: Failure | None = None

    def feed(self, data: bytes) -> None:
        """Some more of the log."""
        self.reader.feed(data)
        if self.reader.telling != self._seen:
            self._seen = self.reader.telling
            self._changed_at = self._clock()
            if self._first_change_at is None:
                self._first_change_at = self._changed_at

    def certain(self) -> Failure | None:
        """The root cause, the first time it is certain; None before and after."""
        now = self._clock()
        if self.announced is not None or self._first_change_at is None or now < self._not_before:
            return None
        if now - self._changed_at < _PAUSE and now - self._first_change_at < _LONGEST_WAIT:
            return None
        self._first_change_at = None
        said = self.reader.said()
        failures = diagnose_said(said, self._language) if said.uncaught or ended_badly(said) else []
        took = self._clock() - now
        self._not_before = now + took * _SHARE
        root = failures[0] if failures else None
        if root is None or not root.root_cause or root.kind in _CONSEQUENCES:
            return None
        self.announced = root
        return root

    def finish(self) -> list[Failure]:
        """Everything that the whole log tells, root cause first."""
        self.reader.finish()
        return diagnose_said(self.reader.said(), self._language)


def same_failure(one: Failure, other: Failure) -> bool:
    """Whether two looks at a log found the same: kind, rank, place and words."""
    names = ("kind", "rank", "filename", "line", "message", "explanation")
    return all(getattr(one, name) == getattr(other, name) for name in names)


_CONSEQUENCES = frozenset(
    {"collective-timeout", "watchdog-stuck", "peer-lost", "stopped-by-launcher", "cancelled"}
    | {"rank-left-early", "terminated", "rendezvous-failed", "nccl-connection-refused"}
    | {"exit-status", "launcher"}
)
"""What may turn out to follow from something that has not been printed yet."""
