"""The failure that ends a run, as soon as it is certain: launchers take seconds to end what is left of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ranksafe.localization import Language
from ranksafe.runs.explain import explain
from ranksafe.runs.explain.evidence import load_evidence
from ranksafe.runs.explain.going_on import without_the_living
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.explain.remote_paths import with_local_files
from ranksafe.runs.model import Failure

_ENDINGS: Final = frozenset({"rank-ended", "exit"})
_TELLING: Final = frozenset({*_ENDINGS, "exception"})
_SETTLED_SECONDS: Final = 0.2
"""A rank that failed before the one whose end was noticed first has written it down by then."""


@dataclass(slots=True)
class FirstFailure:
    """Of one run. What it tells is not taken back, only completed by what is known when the run has ended; unless the
    user has the launcher start failed ranks again (``max_restarts``) and they come through.

    Where the supervisor cannot watch the ranks (`supervisor.RankEnds`), there is nothing to tell before that.
    """

    directory: Path
    ranks: int | None
    user_code: UserCode
    language: Language
    _ended_at: float | None = None
    _news: bool = False
    _told: bool = False

    def heard(self, entry: Mapping[str, Any]) -> None:
        """A line of a rank's journal, or of the supervisor's."""
        event = entry.get("event")
        if event in _ENDINGS and self._ended_at is None:
            self._ended_at = time.monotonic()
        self._news = self._news or event in _TELLING

    def turn(self) -> Failure | None:
        """The failure, once; called many times a second."""
        if self._told or not self._news or self._ended_at is None:
            return None
        if time.monotonic() - self._ended_at < _SETTLED_SECONDS:
            return None
        self._news = False
        evidence = load_evidence(self.directory, self.ranks)
        without_the_living(evidence)
        with_local_files(evidence, self.directory)
        failures, _ = explain(evidence, self.user_code, self.language)
        self._told = bool(failures)
        return failures[0] if failures else None
