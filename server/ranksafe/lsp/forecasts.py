"""Forecasts of GPU memory that the editor asked for: progress with cancel, and the last answer for each script.

A forecast is up to three things in a row: the script on simulated GPUs; where memory ran out, once more without a
bound; and, where that was asked for, further runs with one thing changed each.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from lsprotocol import types

from ranksafe.localization import Translated
from ranksafe.lsp.connection import Connection
from ranksafe.lsp.fit_findings import findings_of_answer
from ranksafe.lsp.lens_refresh import LensRefresh
from ranksafe.lsp.messages import (
    FAILED_WITHOUT_REASON,
    FIT_CANCELLED,
    FIT_FAILED,
    FIT_ONCE_MORE,
    FIT_TITLE,
    FIT_TRYING,
    GO_ON,
)
from ranksafe.lsp.progress import Progress
from ranksafe.lsp.publisher import Publisher
from ranksafe.lsp.run_findings import RunFindings

if TYPE_CHECKING:
    from ranksafe.lsp.fit_findings import Answer
    from ranksafe.runs.errors import RunNotPossible
    from ranksafe.runs.fit_search import Change, Trial
    from ranksafe.runs.model import RunEvent, RunRequest, RunResult

logger = logging.getLogger(__name__)
_numbers = itertools.count(1)
_LONGEST_END_SECONDS: Final = 15.0
_TOLD: Final = frozenset({"status", "step"})


class _Run(Protocol):
    """What is used of `ranksafe.runs.start.Run`."""

    def cancel(self) -> None: ...

    def wait(self, timeout: float | None = None) -> RunResult | None: ...


@dataclass(slots=True)
class _Going:
    """A forecast that goes on."""

    name: str
    progress: Progress
    started: asyncio.Future[None]
    """Whether its first run could be started."""
    stop: threading.Event = field(default_factory=threading.Event)
    run: _Run | None = None
    """The one that goes on."""
    doing: str = ""
    """What that run is for, where it is not the first."""

    def cancel(self) -> None:
        """End it; returns at once."""
        self.stop.set()
        if self.run is not None:
            self.run.cancel()


@dataclass(slots=True)
class Forecasts:
    """Those of this server, by script."""

    _client: Connection
    _findings: RunFindings
    _publisher: Publisher
    _lens_refresh: LensRefresh
    _going: dict[Path, _Going] = field(default_factory=dict)
    _answers: dict[Path, Answer] = field(default_factory=dict)

    # -- questions

    def running(self, script: Path | None) -> str | None:
        """The name of the forecast of a script that goes on."""
        going = self._going.get(script) if script is not None else None
        return None if going is None else going.name

    def answer(self, script: Path | None) -> Answer | None:
        """What the script's last forecast said."""
        return self._answers.get(script) if script is not None else None

    def log_of(self, run_id: str | None) -> Path | None:
        """The log of a forecast's run."""
        results = (each.result for each in self._answers.values())
        return next((one.log for one in results if one is not None and one.run_id == run_id), None)

    def outdate(self, is_used_by: Callable[[Path], bool]) -> None:
        """A file was saved: answers for scripts that use it were for another text of it."""
        for script, answer in self._answers.items():
            if not answer.is_outdated and is_used_by(script):
                self._answers[script] = replace(answer, is_outdated=True)
                self._lens_refresh.changed()

    # -- start and end

    async def start(self, asked: Answer, *, most_runs: int = 0) -> str:
        """Start a forecast and return its name; ``asked``: without an answer, or with one that is to be searched on.

        ``most_runs``: further runs that look for what would make it fit. Raises `RunNotPossible` when nothing can be
        started.
        """
        loop = asyncio.get_running_loop()
        script = asked.script
        devices = {"count": asked.gpus, "model": asked.model}
        progress = Progress(self._client, FIT_TITLE.filled(file=script.name, **devices))
        going = _Going(f"forecast-{next(_numbers)}", progress, loop.create_future())
        self._going[script] = going
        progress.on_cancel(going.cancel)
        try:
            await progress.begin()
        except BaseException:
            del self._going[script]
            raise
        self._lens_refresh.changed()
        work = _Work(self._client, loop, going, lambda answer: self._know(script, answer))
        threading.Thread(
            target=work.do, args=(asked, most_runs, self._ended), name=going.name, daemon=True
        ).start()
        await going.started
        return going.name

    def cancel(self, name: str | None) -> bool:
        """End one forecast, or without a name all of them; whether there was one."""
        chosen = [one for one in self._going.values() if name in (None, one.name)]
        for one in chosen:
            one.cancel()
        return bool(chosen)

    def end_all(self) -> None:
        """End every forecast and wait for it: the server goes away."""
        self.cancel(None)
        for one in self._going.values():
            if one.run is not None:
                one.run.wait(_LONGEST_END_SECONDS)

    def _know(self, script: Path, answer: Answer) -> None:
        self._answers[script] = answer
        self._findings.update(script, findings_of_answer(answer), of_forecast=True)
        self._publisher.show_failures()

    def _ended(self, going: _Going, asked: Answer, error: RunNotPossible | None) -> None:
        """``error``: why there is no answer, where there is none."""
        from ranksafe.runs.errors import RunCancelled

        script = asked.script
        self._going.pop(script, None)
        self._lens_refresh.changed()
        answer, language = self._answers.get(script), self._client.language
        cancelled = FIT_CANCELLED.filled(file=script.name).in_language(language)
        if not going.started.done():
            going.progress.end("")
            going.started.set_exception(error or RunCancelled())
        elif isinstance(error, RunCancelled):
            going.progress.end(cancelled)
            self._client.log(cancelled)
        elif error is not None:
            going.progress.end("")
            self._client.warn(FIT_FAILED.filled(file=script.name, reason=error.message))
        elif answer is not None:
            said = answer.said()
            going.progress.end(said.in_language(language))
            (self._client.inform if answer.is_well else self._client.warn)(said)
            for line in answer.details():
                self._client.log(f"  {line.in_language(language)}")


@dataclass(slots=True)
class _Work:
    """On a thread of its own: what a forecast takes, one run after the other."""

    _client: Connection
    _loop: asyncio.AbstractEventLoop
    _going: _Going
    _know: Callable[[Answer], None]

    def do(
        self,
        asked: Answer,
        most_runs: int,
        then: Callable[[_Going, Answer, RunNotPossible | None], None],
    ) -> None:
        """All of it; ``then`` is called on the server's own thread, as `_know` is for each answer on the way."""
        from ranksafe.runs.errors import RunNotPossible

        error: RunNotPossible | None = None
        try:
            for answer in self._answers(asked, most_runs):
                self._soon(self._know, answer)
        except RunNotPossible as reason:
            error = reason
        except Exception:
            logger.exception("the end of a forecast is not known")
            error = RunNotPossible(FAILED_WITHOUT_REASON)
        self._soon(then, self._going, asked, error)

    def _answers(self, asked: Answer, most_runs: int) -> Iterator[Answer]:
        from ranksafe.runs.fit import Fits, as_forecast, forecast_of, out_of_memory
        from ranksafe.runs.records.forecast import keep_forecast

        answer = asked
        if answer.result is None:
            result, unbounded = self._run(asked.request), None
            if out_of_memory(result) is not None:
                self._going.doing = FIT_ONCE_MORE.in_language(self._client.language)
                unbounded = self._run(as_forecast(asked.request, unbounded=True))
            found = forecast_of(asked.request, asked.gpus, result, unbounded)
            if found is not None:
                keep_forecast(found, asked.request, asked.gpus, result)
            answer = replace(asked, result=result, forecast=found)
            yield answer
        if most_runs and answer.forecast is not None and answer.forecast.fits is not Fits.YES:
            for trial in self._trials(answer, most_runs):
                answer = replace(answer, trials=(*answer.trials, trial))
                yield answer
            yield replace(answer, is_searched=True)

    def _trials(self, first: Answer, most_runs: int) -> Iterator[Trial]:
        from ranksafe.runs.errors import RunCancelled, RunNotPossible
        from ranksafe.runs.fit_search import Trial, changed, search, trial_of
        from ranksafe.runs.fit_trials import change_told
        from ranksafe.runs.model import Outcome

        request, forecast = first.request, first.forecast
        assert forecast is not None
        numbers = itertools.count(1)

        def run(change: Change) -> Trial:
            told = FIT_TRYING.filled(
                count=next(numbers), most=most_runs, change=change_told(change)
            )
            self._going.doing = told.in_language(self._client.language)
            wanted = changed(request, change)
            try:
                return trial_of(change, wanted, self._run(wanted), forecast)
            except RunCancelled:
                raise
            except RunNotPossible as error:
                reason = error.message.in_language(self._client.language)
                return Trial(change, Outcome.NOT_STARTED, None, reason)

        yield from search(
            request, first.gpus, forecast, first.exposed, most_runs=most_runs, run=run
        )

    def _run(self, request: RunRequest) -> RunResult:
        """Start a run and wait for it."""
        from ranksafe.runs.errors import RunCancelled
        from ranksafe.runs.model import Outcome
        from ranksafe.runs.start import start_run

        going = self._going
        if going.stop.is_set():
            raise RunCancelled
        run = start_run(request, self._tell, should_stop=going.stop.is_set, agrees=self._agrees)
        going.run = run
        self._soon(_is_started, going)
        if going.stop.is_set():
            run.cancel()
        result = run.wait()
        if result is None or result.outcome is Outcome.CANCELLED:
            raise RunCancelled
        return result

    def _tell(self, event: RunEvent) -> None:
        if event.kind in _TOLD and event.text:
            text = event.text.splitlines()[0]
            doing = f"{self._going.doing}: " if self._going.doing else ""
            self._soon(self._going.progress.report, f"{doing}{text}")

    def _agrees(self, question: Translated) -> bool:
        asked = self._ask(question)
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result()

    async def _ask(self, question: Translated) -> bool:
        go_on = GO_ON.in_language(self._client.language)
        return await self._client.ask(question, [go_on], types.MessageType.Warning) == go_on

    def _soon(self, call: Callable[..., object], *given: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *given)


def _is_started(going: _Going) -> None:
    if not going.started.done():
        going.started.set_result(None)
