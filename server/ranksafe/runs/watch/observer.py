"""What a run tells while it goes on: the ranks' states, a hang, the failure that ends it, and in the end who was waited
for."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ranksafe.localization import Translated
from ranksafe.runs.compared_ranks.ways_parted import with_parting
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.model import Failure, RunEvent, RunRequest
from ranksafe.runs.predicted import with_predicted_rule
from ranksafe.runs.watch.devices import devices_in_use
from ranksafe.runs.watch.first_failure import FirstFailure
from ranksafe.runs.watch.live import in_one_line
from ranksafe.runs.watch.phases import phase_of
from ranksafe.runs.watch.watchdog import Hang, Watchdog

logger = logging.getLogger(__name__)

_TELL_SECONDS = 1.0


_STOPPED = Translated(
    en="the ranks hang, the run is being stopped (--on-hang report keeps it): {what}",
    zh_cn="各 rank 已挂起，正在停止运行（--on-hang report 可保留）：{what}",
)
_REPORTED = Translated(
    en="the ranks hang, the run is kept: {what}", zh_cn="各 rank 已挂起，运行被保留：{what}"
)
_GOES_ON = Translated(
    en="the ranks go on: what was reported was no hang",
    zh_cn="各 rank 已继续：之前报告的并非挂起",
)


_LAUNCHING = Translated(en="the launcher is starting the ranks", zh_cn="启动器正在启动各个 rank")


class Observer:
    """Of one run; used by its thread only."""

    def __init__(
        self, request: RunRequest, ranks: int | None, directory: Path, user_code: UserCode
    ) -> None:
        self._request = request
        self._ranks = ranks
        self._directory = directory
        self._user_code = user_code
        self._watchdog = Watchdog(
            directory, user_code, request.language, own_machine=request.target == "local"
        )
        # What a rehearsal's ranks fail of may be a limit of the simulation, which is judged in the end.
        self._first: FirstFailure | None = None
        if not request.target.startswith("simulated:"):
            self._first = FirstFailure(directory, ranks, user_code, request.language)
        self._rehearses = request.target.startswith("simulated")
        self._phases: set[str] = set()
        self._told = ""
        self._told_at = 0.0
        self._told_of: Hang | None = None
        self._broken = False
        self.ends_run = False
        """Whether the ranks hang and the run is to be ended for it."""

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The hang that stands; empty where there is none, or a rank's own failure explains it."""
        return () if self._told_of is None else self._told_of.failures

    @property
    def has_heard_of_a_failure(self) -> bool:
        """Whether a rank has raised an exception that ends it."""
        return any(rank.raised for rank in self._watchdog.ranks.values())

    def heard(self, rank: int | None, entry: Mapping[str, Any]) -> None:
        """A line of a rank's journal; without a rank, of the supervisor's."""
        self._watchdog.heard(rank, entry)
        if self._first is not None:
            self._first.heard(entry)

    def turn(self) -> Iterator[RunEvent]:
        """What is new; called many times a second. Never raises: a run that cannot be watched goes on unwatched."""
        if self.ends_run or self._broken:
            return
        try:
            events = list(self._new_events())
        except Exception:
            logger.warning("run %s is no longer watched", self._directory, exc_info=True)
            self._broken = True
            return
        yield from events

    def _new_events(self) -> Iterator[RunEvent]:
        failure = self._first.turn() if self._first is not None else None
        if failure is not None:
            failure = self._with_rule(failure)
            yield RunEvent("first-failure", failure.message, failure.rank, failures=(failure,))
        heard = self._watchdog.turn()
        yield from self._beginning()
        if not heard:
            return
        yield from self._states()
        if self._request.debugging is not None:
            return  # whoever stands at a breakpoint is waited for
        hang = self._watchdog.hang
        if hang is not self._told_of:
            yield self._hang(hang)

    def last_words(self) -> Sequence[Translated]:
        """For the end of the run: sentences with figures, no failures."""
        is_told = self.ends_run or self._request.debugging is not None
        return [] if is_told else self._watchdog.stragglers()

    def _beginning(self) -> Iterator[RunEvent]:
        """What the first rank does until it steps, each once."""
        ranks = self._watchdog.ranks
        phase = None
        if self._rehearses and ranks:
            beat = ranks[min(ranks)].beat
            phase = phase_of(beat.frames) if beat is not None and not beat.steps else None
        elif self._rehearses and self._ranks is not None:
            phase = _LAUNCHING
        if phase is not None and phase.en not in self._phases:
            self._phases.add(phase.en)
            yield RunEvent("status", phase.in_language(self._request.language))

    def _states(self) -> Iterator[RunEvent]:
        now = time.monotonic()
        if now - self._told_at < _TELL_SECONDS:
            return
        states = self._watchdog.states()
        devices = tuple(devices_in_use(self._directory))
        line = in_one_line(states).in_language(self._request.language)
        text = " · ".join((line, *devices))
        if states and text != self._told:
            self._told, self._told_at = text, now
            yield RunEvent("ranks", text, states=tuple(states), devices=devices)

    def _hang(self, hang: Hang | None) -> RunEvent:
        self._told_of = hang
        language = self._request.language
        if hang is None:
            return RunEvent("hang", _GOES_ON.in_language(language))
        if not hang.failures:
            self.ends_run = True
            return RunEvent("hang", hang.sentence.in_language(language))
        parted = with_parting(
            hang.failures, self._directory, hang.mismatch, self._user_code, language
        )
        hang.failures = tuple(self._with_rule(failure) for failure in parted)
        self.ends_run = self._request.on_hang == "stop"
        sentence = (_STOPPED if self.ends_run else _REPORTED).filled(what=hang.sentence)
        return RunEvent("hang", sentence.in_language(language), failures=hang.failures)

    def _with_rule(self, failure: Failure) -> Failure:
        try:
            return with_predicted_rule(failure, self._ranks, self._request.launcher)
        except Exception:  # the hang is to be told of, whatever the analysis meets in the source
            logger.warning("no rule could be looked for", exc_info=True)
            return failure
