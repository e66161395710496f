"""Runs that the editor asked for: progress with cancel, failures on their lines, the log."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lsprotocol import types

from ranksafe.localization import Translated
from ranksafe.lsp.connection import Connection
from ranksafe.lsp.lens_refresh import LensRefresh
from ranksafe.lsp.messages import (
    FAILED_WITHOUT_REASON,
    GO_ON,
    REHEARSAL_PASSED,
    REHEARSAL_TITLE,
    RUN_CANCELLED,
    RUN_FAILED,
    RUN_LIMIT,
    RUN_SUCCEEDED,
    RUN_TITLE,
    SMOKE_TITLE,
)
from ranksafe.lsp.progress import Progress
from ranksafe.lsp.publisher import Publisher
from ranksafe.lsp.run_findings import RunFinding, RunFindings, finding_of, findings_of
from ranksafe.lsp.targets import is_rehearsal, simulated_gpus
from ranksafe.lsp.testimony import Testimonies, testimony_of

if TYPE_CHECKING:
    from ranksafe.runs.model import Failure, RunEvent, RunRequest, RunResult


logger = logging.getLogger(__name__)
Address = tuple[str, int]


class RunningRun(Protocol):
    """What is used of `ranksafe.runs.start.Run`, which is imported when the first run starts."""

    run_id: str

    @property
    def log(self) -> Path:
        """All ranks' output so far."""

    def cancel(self) -> None:
        """Have every process of the run ended; returns at once."""

    def leave(self) -> bool:
        """Have the run ended, unless it belongs to a scheduler; whether it is being ended."""

    def wait(self, timeout: float | None = None) -> RunResult | None:
        """The result, or None when the run goes on after ``timeout`` seconds."""


@dataclass(slots=True)
class Active:
    """A run that goes on."""

    script: Path
    run: RunningRun
    progress: Progress
    debugger: asyncio.Future[Address | None]
    """Where the rank to be debugged listens; None: it does not."""
    in_background: bool
    """Nobody waits for it: the lenses stay, only its end is drawn."""


@dataclass(slots=True)
class RunControl:
    """The runs of this server, by run id."""

    _client: Connection
    _findings: RunFindings
    _testimonies: Testimonies
    _publisher: Publisher
    _lens_refresh: LensRefresh
    _active: dict[str, Active] = field(default_factory=dict)
    _starting: dict[Path, threading.Event] = field(default_factory=dict)
    """Scripts whose run is being prepared, which takes minutes where something must be compiled; set: give up."""
    _starting_background: dict[Path, threading.Event] = field(default_factory=dict)
    _logs: dict[str, Path] = field(default_factory=dict)
    _last_results: dict[Path, RunResult] = field(default_factory=dict)

    # -- questions

    def running(self, script: Path | None) -> str | None:
        """The id of the run of a script that goes on ("" while it is being started)."""
        if script in self._starting:
            return ""
        found = (key for key, one in self._active.items() if one.script == script)
        return next((key for key in found if not self._active[key].in_background), None)

    def log_of(self, run_id: str | None) -> Path | None:
        """The log of a run, or of the one that was started last."""
        if run_id is None:
            run_id = next(reversed(self._logs), None)
        return self._logs.get(run_id) if run_id is not None else None

    def last_result(self, script: Path) -> RunResult | None:
        """How the script's last run ended."""
        return self._last_results.get(script)

    def going_on(self) -> dict[str, Path]:
        """The script of each run that goes on, by the run's id."""
        return {run_id: one.script for run_id, one in self._active.items()}

    async def debugger(self, run_id: str) -> Address | None:
        """Where the rank to be debugged listens, once it does; None when it never will."""
        active = self._active.get(run_id)
        return None if active is None else await active.debugger

    # -- start and end

    async def start(self, request: RunRequest) -> str:
        """Start a run and return its id.

        Raises `ranksafe.runs.errors.RunNotPossible` when it cannot be started.
        """
        from ranksafe.runs.start import start_run

        loop = asyncio.get_running_loop()
        progress = Progress(self._client, _title(request))
        stop = threading.Event()
        debugger: asyncio.Future[Address | None] = loop.create_future()

        def on_event(event: RunEvent) -> None:
            loop.call_soon_threadsafe(self._show_event, progress, event)
            if event.kind == "debugger":
                loop.call_soon_threadsafe(self._debugger_known, debugger, event)
            if event.kind in ("hang", "first-failure") and not request.in_background:
                loop.call_soon_threadsafe(self._show_failures, request.script, event)

        def agrees(question: Translated) -> bool:
            if request.in_background:
                return True  # as when the user started the same
            return asyncio.run_coroutine_threadsafe(self._ask(question), loop).result()

        def work() -> RunningRun:
            return start_run(request, on_event, should_stop=stop.is_set, agrees=agrees)

        starting = self._starting_background if request.in_background else self._starting
        starting[request.script] = stop
        progress.on_cancel(stop.set)
        try:
            await progress.begin()
            self._lens_refresh.changed()
            run = await loop.run_in_executor(None, work)
        except BaseException:
            progress.end("")
            # Who asked meanwhile was told of a run.
            self._lens_refresh.changed()
            raise
        finally:
            if starting.get(request.script) is stop:
                del starting[request.script]
        self._active[run.run_id] = Active(
            request.script, run, progress, debugger, request.in_background
        )
        self._logs[run.run_id] = run.log
        progress.on_cancel(run.cancel)
        _in_thread(lambda: run.wait(), lambda *end: self._ended(run.run_id, *end), loop)
        self._lens_refresh.changed()
        return run.run_id

    def cancel(self, run_id: str | None) -> bool:
        """End one run, or without an id all of them, those being prepared too; whether there was one."""
        chosen = [one for key, one in self._active.items() if run_id is None or key == run_id]
        for one in chosen:
            one.run.cancel()
        starting = self._all_starting() if run_id is None else []
        for stop in starting:
            stop.set()
        return bool(chosen or starting)

    def cancel_background(self, script: Path) -> None:
        """End what of a script runs in the background."""
        if script in self._starting_background:
            self._starting_background[script].set()
        for one in self._active.values():
            if one.in_background and one.script == script:
                one.run.cancel()

    def _all_starting(self) -> list[threading.Event]:
        return [*self._starting.values(), *self._starting_background.values()]

    def end_all(self) -> None:
        """End every run and wait for it, except what belongs to a scheduler: the server goes away."""
        for stop in self._all_starting():
            stop.set()
        ending = [one for one in self._active.values() if one.run.leave()]
        for one in ending:
            one.run.wait(_LONGEST_END_SECONDS)

    async def _ask(self, question: Translated) -> bool:
        """Put a question to the user; no, where the client cannot ask or the user turns away."""
        go_on = GO_ON.in_language(self._client.language)
        return await self._client.ask(question, [go_on], types.MessageType.Warning) == go_on

    def _show_event(self, progress: Progress, event: RunEvent) -> None:
        if event.kind in (
            "status",
            "step",
            "ranks",
            "hang",
            "first-failure",
            "debugger",
            "failure",
        ):
            progress.report(event.text.splitlines()[0] if event.text else "")

    def _debugger_known(self, debugger: asyncio.Future[Address | None], event: RunEvent) -> None:
        if not debugger.done():
            debugger.set_result(event.address)
        if event.address is None:
            self._client.warn(Translated(event.text, event.text))
        else:
            self._client.log(event.text)

    def _show_failures(self, script: Path, event: RunEvent) -> None:
        """Draw what is certain while the run goes on; without failures, what was drawn is no longer so."""
        run_id = self.running(script) or ""
        findings = [finding_of(script, run_id, failure) for failure in event.failures]
        self._draw(script, findings)
        self._client.log(event.text)

    def _draw(self, script: Path, findings: list[RunFinding]) -> None:
        self._findings.update(script, findings)
        self._publisher.show_failures()

    def _ended(self, run_id: str, result: RunResult | None, reason: Translated) -> None:
        """``reason``: why there is no result, where there is none."""
        active = self._active.pop(run_id, None)
        if active is None:
            return
        if not active.debugger.done():
            active.debugger.set_result(None)
        if active.in_background and (result is None or result.outcome.value == "cancelled"):
            active.progress.end("")
            return
        if result is None:
            active.progress.end("")
            self._client.warn(RUN_FAILED.filled(file=active.script.name, reason=reason))
            self._lens_refresh.changed()
            return
        self._last_results[active.script] = result
        if result.outcome.value != "cancelled":
            self._testimonies.replace(active.script, testimony_of(result))
            self._draw(active.script, findings_of(active.script, result))
        summary = _summary(active.script, result)
        active.progress.end(summary.in_language(self._client.language))
        is_quiet = active.in_background or self._client.shows_runs
        if result.outcome.value in ("succeeded", "cancelled") or is_quiet:
            self._client.log(summary.in_language(self._client.language))
        else:
            self._client.warn(summary)
        # What a rehearsal changed or cannot show belongs to its result, whatever that is.
        for sentence in (*result.modified, *result.limits):
            self._client.log(f"  {sentence}")
        self._lens_refresh.changed()


_LONGEST_END_SECONDS = 15.0


def _in_thread(
    work: Callable[[], RunResult | None],
    then: Callable[[RunResult | None, Translated], None],
    loop: asyncio.AbstractEventLoop,
) -> None:
    """A thread of its own: a run takes hours, and the pool's threads would hold up the server's end."""

    def body() -> None:
        from ranksafe.runs.errors import RunNotPossible

        result, reason = None, FAILED_WITHOUT_REASON
        try:
            result = work()
        except RunNotPossible as error:
            reason = error.message
        except Exception:
            logger.exception("the end of a run is not known")
        if not loop.is_closed():
            loop.call_soon_threadsafe(then, result, reason)

    threading.Thread(target=body, daemon=True).start()


def _title(request: RunRequest) -> Translated:
    name = request.script.name
    if is_rehearsal(request.target):
        return REHEARSAL_TITLE.filled(file=name, count=simulated_gpus(request.target))
    return (SMOKE_TITLE if request.steps is not None else RUN_TITLE).filled(file=name)


def _summary(script: Path, result: RunResult) -> Translated:
    if result.outcome.value == "succeeded" and is_rehearsal(result.target):
        return REHEARSAL_PASSED.filled(file=script.name, seconds=round(result.seconds))
    if result.outcome.value == "succeeded":
        return RUN_SUCCEEDED.filled(file=script.name, seconds=round(result.seconds))
    if result.outcome.value == "cancelled":
        return RUN_CANCELLED.filled(file=script.name)
    if result.outcome.value == "simulation-limit":
        met = result.simulation_limit
        reason = FAILED_WITHOUT_REASON if met is None else _reason(met)
        return RUN_LIMIT.filled(file=script.name, reason=reason)
    first = next(iter(result.failures), None)
    reason = FAILED_WITHOUT_REASON if first is None else _reason(first)
    return RUN_FAILED.filled(file=script.name, reason=reason)


def _reason(failure: Failure) -> Translated:
    """One line: what happened, on which rank, where."""
    text = failure.message.splitlines()[0] if failure.message else failure.kind
    where = "" if failure.rank is None else f"rank {failure.rank}"
    if where and text.startswith(f"{where} "):
        where = ""  # The place may be another rank's, which waited for it.
    if failure.filename and failure.line:
        where += f"{', ' if where else ''}{Path(failure.filename).name}:{failure.line}"
    return (
        Translated(f"{text} ({where})", f"{text}（{where}）") if where else Translated(text, text)
    )
