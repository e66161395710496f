"""Carry a run out and show it: what `run` and `rehearse` do once they know what is wanted."""

from __future__ import annotations

import argparse
import json
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TextIO

from ranksafe.cli.live_lines import LiveLines
from ranksafe.cli.output import run_as_github
from ranksafe.cli.rank_tracebacks import RankTracebacks
from ranksafe.cli.render_failure import render_failure, render_limit
from ranksafe.cli.streams import write_as_printed
from ranksafe.cli.terminal import Style, fail, harmless, note, style_for
from ranksafe.localization import Language, Translated
from ranksafe.runs.errors import RunCancelled, RunNotPossible
from ranksafe.runs.log import mark
from ranksafe.runs.model import Outcome, RunEvent, RunRequest, RunResult
from ranksafe.runs.serialize import SCHEMA, to_json
from ranksafe.runs.start import OnEvent, Run, start_run

STATUS = {
    Outcome.SUCCEEDED: 0,
    Outcome.FAILED: 1,
    Outcome.SILENT_FAILURE: 1,
    Outcome.NOT_STARTED: 2,
    Outcome.SIMULATION_LIMIT: 3,
    Outcome.CANCELLED: 130,
}
_LAUNCHER_LINES = 100
_OUTCOMES = {
    Outcome.SUCCEEDED: Translated("succeeded in {seconds} s", "成功，用时 {seconds} 秒"),
    Outcome.FAILED: Translated("failed after {seconds} s", "{seconds} 秒后失败"),
    Outcome.SILENT_FAILURE: Translated(
        "ended without an error, but is wrong ({seconds} s)", "没有报错，但结果有误（{seconds} 秒）"
    ),
    Outcome.NOT_STARTED: Translated("was not started", "未能启动"),
    Outcome.SIMULATION_LIMIT: Translated(
        "reached a limit of the simulation after {seconds} s; this is no failure of the script",
        "{seconds} 秒后达到模拟的限制；这不是脚本的故障",
    ),
    Outcome.CANCELLED: Translated("cancelled after {seconds} s", "{seconds} 秒后被取消"),
}
_COLORS = {Outcome.SUCCEEDED: "green", Outcome.SIMULATION_LIMIT: "yellow"}
_LOG = Translated("log: {path}", "日志：{path}")
_CANCELLING = Translated(
    "cancelling: ending every process of the run", "正在取消：结束此次运行的所有进程"
)
_GO_ON = Translated("{question} Go on? [y/N] ", "{question}继续吗？[y/N] ")
_YES = frozenset({"y", "yes", "是"})


def carry_out(
    wanted: RunRequest | Callable[[OnEvent], Run], arguments: argparse.Namespace, language: Language
) -> int:
    """Start a request, or come back to a run, show it until it ends, print the result; returns the exit status.

    Of ``arguments``: ``output_format``, ``color``, ``quiet`` and, for a request, ``yes``.
    """
    kind = arguments.output_format
    shown = show_run(wanted, arguments, language, output_is_data=kind != "text")
    if isinstance(shown, int):
        return shown
    result = shown.result
    if kind == "json":
        print(json.dumps(to_json(result, language), ensure_ascii=False, indent=2))
    else:
        sys.stdout.flush()
        summarize(shown, language, style_for(arguments.color, sys.stderr))
    if kind == "github":
        print(run_as_github.render(result, language), end="")
    return STATUS[result.outcome]


@dataclass(frozen=True, slots=True)
class Shown:
    """A run that has ended."""

    result: RunResult
    said: frozenset[str]
    """What was told of it while it went on."""


def show_run(
    wanted: RunRequest | Callable[[OnEvent], Run],
    arguments: argparse.Namespace,
    language: Language,
    *,
    output_is_data: bool,
) -> Shown | int:
    """Start a request, or come back to a run, and show it until it ends; the exit status where there is no result,
    which is then told.

    ``output_is_data``: our standard output is for the result alone. Of ``arguments``: as `carry_out`.
    """
    kind = arguments.output_format
    style = style_for(arguments.color, sys.stderr)
    live = LiveLines(style, language, wanted=kind == "text")
    tracebacks = None if arguments.quiet else RankTracebacks(language)
    screen = _Screen(output_is_data, style, live, tracebacks)
    try:
        if isinstance(wanted, RunRequest):
            run = start_run(wanted, screen.show, agrees=_asking(arguments.yes, language))
        else:
            run = wanted(screen.show)
    except RunNotPossible as error:
        return _refused(wanted, error, kind, language)
    try:
        result = _wait(run, language)
    except RunNotPossible as error:
        screen.end()
        _refused(wanted, error, kind, language, Outcome.FAILED)
        return STATUS[Outcome.FAILED]
    screen.end()
    if not result.ranks or (result.failures and result.failures[0].rank is None):
        screen.show_launcher()
    return Shown(result, frozenset(screen.said))


def _refused(
    wanted: object,
    error: RunNotPossible,
    kind: str,
    language: Language,
    outcome: Outcome = Outcome.NOT_STARTED,
) -> int:
    """There is no result: say why; returns the exit status of a run that was not started."""
    cancelled = isinstance(error, RunCancelled)
    if kind == "json":
        outcome = Outcome.CANCELLED if cancelled else outcome
        print(json.dumps(_without_result(wanted, error, language, outcome), ensure_ascii=False))
    if kind == "github" and not cancelled:
        print(run_as_github.not_started(error.message.in_language(language)), end="")
    return fail(error.message.in_language(language), 130 if cancelled else 2)


def _asking(agreed: bool, language: Language) -> Callable[[Translated], bool] | None:
    """Ask on the terminal; None where there is none, and nothing was agreed to beforehand."""
    if agreed:
        return lambda _question: True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None

    def ask(question: Translated) -> bool:
        text = _GO_ON.filled(question=question).in_language(language)
        print(text, end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in _YES

    return ask


def _wait(run: Run, language: Language) -> RunResult:
    """Until the run is over; Ctrl+C cancels it, and a second one does not wait for it."""
    try:
        result = run.wait()
    except KeyboardInterrupt:
        note(_CANCELLING.in_language(language))
        run.cancel()
        result = run.wait()
    assert result is not None
    return result


class _Screen:
    """Shows a run while it goes on. The launcher repeats in many lines that a rank failed, so it is kept back."""

    def __init__(
        self, output_is_data: bool, style: Style, live: LiveLines, tracebacks: RankTracebacks | None
    ) -> None:
        """``tracebacks``: None where the ranks' output is not to be shown."""
        self._output_is_data = output_is_data
        self._style = style
        self._live = live
        self._tracebacks = tracebacks
        self._launcher: deque[str] = deque(maxlen=_LAUNCHER_LINES)
        self._heard_of_rank = False
        self._open: tuple[TextIO, int | None, str] | None = None
        """Where a line was begun that goes on, and whose."""
        self.said: set[str] = set()
        """What was told while the run went on."""

    def show(self, event: RunEvent) -> None:
        """Print an event; the script's standard output goes to ours unless that is for a program to read."""
        if event.kind == "ranks":
            self._live.show(event)
            return
        self._live.erase()
        self._print(event)
        self._live.draw()

    def end(self) -> None:
        """The run is over."""
        self._live.end()
        self._end_line()
        for rank, line in self._tracebacks.rest() if self._tracebacks is not None else ():
            self._write(sys.stderr, RunEvent("output", line, rank, "stderr"))

    def _print(self, event: RunEvent) -> None:
        if event.kind == "output" and event.rank is None and event.stream == "stderr":
            self._keep_back(event.text)
        elif event.kind == "output":
            self._print_output(event)
        elif event.kind in ("status", "step", "hang"):
            self.said.add(event.text)
            color = "yellow" if event.kind == "hang" else "cyan"
            text = harmless(f"ranksafe: {event.text}")
            self._end_line()
            print(self._style.paint(color, text), file=sys.stderr, flush=True)

    def show_launcher(self) -> None:
        """Print what was kept back: no rank has a reason of its own, or none was heard of."""
        for line in self._launcher:
            self._write(sys.stderr, RunEvent("output", line, None, "stderr"))
        self._launcher.clear()

    def _keep_back(self, text: str) -> None:
        """Of the launcher's own words the last; all of them where no rank speaks for itself."""
        self._launcher.extend(text.rsplit("\n", _LAUNCHER_LINES))
        if not self._heard_of_rank and len(self._launcher) > _LAUNCHER_LINES:
            self.show_launcher()
        while len(self._launcher) > _LAUNCHER_LINES:
            self._launcher.popleft()

    def _print_output(self, event: RunEvent) -> None:
        self._heard_of_rank |= event.rank is not None
        if self._tracebacks is None:
            return
        elsewhere = self._output_is_data or event.stream == "stderr"
        stream = sys.stderr if elsewhere else sys.stdout
        rank = event.rank
        if event.stream == "stderr" and rank is not None:
            if self._tracebacks.concerns(rank, event.text):
                lines = [
                    each for line in event.lines for each in self._tracebacks.lines(rank, line)
                ]
                if lines:
                    self._write(stream, replace(event, text="\n".join(lines), goes_on=False))
                return
        self._write(stream, event)

    def _write(self, stream: TextIO, event: RunEvent) -> None:
        """Print lines of a rank or the launcher, each with its mark, but what goes on where a line was left open."""
        mark = f"{self._marked(event.rank)} "
        text = event.text.replace("\n", f"\n{mark}")
        source = (stream, event.rank, event.stream)
        if self._open != source:
            self._end_line()
            text = mark + text
        self._open = source if event.goes_on else None
        write_as_printed(stream, text if event.goes_on else text + "\n")

    def _end_line(self) -> None:
        if self._open is not None:
            write_as_printed(self._open[0], "\n")
            self._open = None

    def _marked(self, rank: int | None) -> str:
        return self._style.paint("dim", mark(rank))


def summarize(shown: Shown, language: Language, style: Style, headline: str | None = None) -> None:
    """Failures, the outcome (or ``headline`` in its place), and what is to be known of it, on standard error."""
    result, told = shown.result, None
    for failure in result.failures:
        print("\n" + render_failure(failure, language, style, told), file=sys.stderr)
        told = told or failure
    if result.simulation_limit is not None:
        print("\n" + render_limit(result.simulation_limit, language, style), file=sys.stderr)
    if headline is None:
        sentence = _OUTCOMES[result.outcome].filled(seconds=round(result.seconds, 1))
        color = _COLORS.get(result.outcome, "red")
        headline = style.paint(color, f"ranksafe: {sentence.in_language(language)}")
    modified = [each for each in result.modified if each not in shown.said]
    lines = [headline, *(f"  {each}" for each in (*modified, *result.limits))]
    if result.log is not None:
        lines.append("  " + _LOG.filled(path=result.log).in_language(language))
    print("\n" + "\n".join(lines), file=sys.stderr)


def _without_result(
    wanted: object, error: RunNotPossible, language: Language, outcome: Outcome
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "run_id": None,
        "outcome": outcome.value,
        "target": wanted.target if isinstance(wanted, RunRequest) else None,
        "command": [],
        "modified": [],
        "limits": [error.message.in_language(language)],
        "ranks": [],
        "failures": [],
        "simulation_limit": None,
        "seconds": 0.0,
        "log": None,
    }
