"""``ranksafe fit train.py``: does the script fit the memory of N GPUs?"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranksafe.cli.argument_types import positive
from ranksafe.cli.output import fit_comparison as comparison_text
from ranksafe.cli.output import fit_search, memory_viz, run_as_github
from ranksafe.cli.output import forecast as answer
from ranksafe.cli.rehearse import steps
from ranksafe.cli.run_options import add_common_arguments, add_rehearsal_arguments, request_of
from ranksafe.cli.running import STATUS, Shown, show_run, summarize
from ranksafe.cli.terminal import CANNOT_WRITE, fail, note, style_for
from ranksafe.localization import Language, Translated
from ranksafe.rehearsal.settings import DEFAULT_GPUS
from ranksafe.runs import fit_comparison
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.fit import (
    DEVICE_MODEL,
    MOST_PROCESSES,
    STEPS,
    Fits,
    Forecast,
    as_forecast,
    forecast_of,
    needs_one_rank,
    out_of_memory,
    with_one_rank,
)
from ranksafe.runs.fit_search import MOST_RUNS, Change, Trial, changed, found_in, search, trial_of
from ranksafe.runs.fit_trials import change_told
from ranksafe.runs.model import Outcome, RunRequest, RunResult
from ranksafe.runs.records.forecast import keep_forecast
from ranksafe.runs.what_is_started import with_its_file

_HELP = {
    "gpus": Translated(
        "GPUs, per node (default: {default})", "每个节点的 GPU 数（默认：{default}）"
    ).filled(default=DEFAULT_GPUS),
    "steps": Translated(
        "N: stop after N optimizer steps (default: {default}); auto: cut long epochs, so that the script comes to its "
        "evaluation and its end; 0: run to the end, nothing cut",
        "N：在 N 个优化器步之后停止（默认：{default}）；auto：缩短过长的 epoch，使脚本能运行到评估和结束；"
        "0：运行到结束，不做缩减",
    ).filled(default=STEPS),
    "ranks": Translated(
        "all: every rank is a process; one: one rank stands for all (default: auto, one for more than {most} GPUs)",
        "all：每个 rank 一个进程；one：由一个 rank 代表全部（默认：auto，超过 {most} 个 GPU 时为 one）",
    ).filled(most=MOST_PROCESSES),
    "must": Translated("status 1 where it does not fit", "放不下时以状态 1 退出"),
    "search": Translated(
        "where it is tight or does not fit, tell what would: the same again with one thing changed that the script "
        "exposes (micro-batch, checkpointing, precision, length), then with more GPUs",
        "很紧张或放不下时，给出怎样才能放下：每次改动脚本公开的一项（micro-batch、激活重计算、精度、长度）再运行，"
        "最后增加 GPU",
    ),
    "runs": Translated(
        "of --search: at most N runs more (default: {default})",
        "用于 --search：最多再运行 N 次（默认：{default}）",
    ).filled(default=MOST_RUNS),
    "compare": Translated(
        "tell what has changed since a forecast that --output-format json wrote",
        "说明自 --output-format json 写出的某次预测以来的变化",
    ),
    "snapshot": Translated(
        "write what was held at the peak as a snapshot of torch's memory, for docs.pytorch.org/memory_viz",
        "将峰值时占用的内容写成 torch 的显存快照，可用 docs.pytorch.org/memory_viz 打开",
    ),
    "devices": Translated("GPUs", "GPU"),
}
_ONCE_MORE = Translated(
    "memory ran out: the same once more on GPUs without a bound, to see what it needs",
    "显存不足：在没有上限的 GPU 上再运行一次，以了解实际需求",
)
_TRYING = Translated(
    "what would make it fit: run {count} of at most {most}: {change}",
    "怎样才能放下：第 {count} 次运行（最多 {most} 次）：{change}",
)
_COLORS = {Fits.YES: "green", Fits.TIGHT: "yellow", Fits.NO: "red"}


def add_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """The arguments of `fit`; those after ``--`` are the script's."""

    def text(key: str) -> str:
        return _HELP[key].in_language(language)

    add_common_arguments(parser, language)
    parser.add_argument(
        "--gpus", type=positive, default=DEFAULT_GPUS, metavar="N", help=text("gpus")
    )
    parser.add_argument(
        "--ranks", choices=["auto", "all", "one"], default="auto", help=text("ranks")
    )
    parser.add_argument("--steps", type=steps, default=STEPS, metavar="N|auto", help=text("steps"))
    parser.add_argument("--must-fit", action="store_true", help=text("must"))
    parser.add_argument("--search", action="store_true", help=text("search"))
    parser.add_argument(
        "--max-runs", type=positive, default=MOST_RUNS, metavar="N", help=text("runs")
    )
    parser.add_argument("--compare", type=Path, metavar="BEFORE.json", help=text("compare"))
    parser.add_argument("--snapshot", type=Path, metavar="FILE", help=text("snapshot"))
    add_rehearsal_arguments(
        parser, language, title=text("devices"), device_model=DEVICE_MODEL, for_memory=True
    )


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """Tell whether it fits; 0 answered, 1 it does not fit and must, or the script failed, 2 used wrongly or broken, 3
    simulation limit, 130 cancelled."""
    try:
        before = None if arguments.compare is None else fit_comparison.read(arguments.compare)
    except fit_comparison.NotComparable as error:
        return fail(error.message.in_language(language), 2)
    request = as_forecast(
        request_of(arguments, language, target=f"simulated:{arguments.gpus}", gpus=None),
        every_block=arguments.snapshot is not None,
    )
    if _one_for_all(request, arguments):
        request = with_one_rank(request, arguments.gpus)
    shown = show_run(request, arguments, language, output_is_data=True)
    if isinstance(shown, int):
        return shown
    result = shown.result
    unbounded = None
    if out_of_memory(result) is not None:
        note(_ONCE_MORE.in_language(language))
        unbounded = _without_bound(request, arguments, language)
    forecast = forecast_of(request, arguments.gpus, result, unbounded)
    if forecast is not None:
        keep_forecast(forecast, request, arguments.gpus * arguments.nodes, result)
    further = _Further(_compared(before, forecast, arguments))
    if arguments.search and forecast is not None and forecast.fits is not Fits.YES:
        further.searched = _search(request, forecast, arguments, language)
    _print(forecast, request, shown, further, arguments, language)
    if arguments.snapshot is not None and forecast is not None:
        try:
            arguments.snapshot.write_bytes(memory_viz.snapshot(forecast))
        except OSError as error:
            message = CANNOT_WRITE.filled(path=arguments.snapshot, reason=error.strerror)
            return fail(message.in_language(language), 2)
    if further.searched is not None and further.searched.stopped:
        return STATUS[Outcome.CANCELLED]
    if forecast is None:
        return STATUS[result.outcome]
    return int(arguments.must_fit and forecast.fits is Fits.NO)


def _one_for_all(request: RunRequest, arguments: argparse.Namespace) -> bool:
    number = arguments.gpus * arguments.nodes
    if arguments.ranks == "auto":
        return needs_one_rank(request, number)
    return bool(number > 1 and arguments.ranks == "one")


def _compared(
    before: fit_comparison.Seen | None, forecast: Forecast | None, arguments: argparse.Namespace
) -> fit_comparison.Comparison | None:
    if before is None or forecast is None:
        return None
    number = arguments.gpus * arguments.nodes
    after = fit_comparison.seen_of(forecast, number, arguments.device_model)
    return fit_comparison.compare(before, after)


def _without_bound(
    request: RunRequest, arguments: argparse.Namespace, language: Language
) -> RunResult | None:
    shown = _again(as_forecast(request, unbounded=True), arguments, language)
    return shown.result if isinstance(shown, Shown) else None


def _again(request: RunRequest, arguments: argparse.Namespace, language: Language) -> Shown | int:
    """A further run: neither the script's output nor a refusal is the answer."""
    quiet = argparse.Namespace(**{**vars(arguments), "quiet": True, "output_format": "text"})
    return show_run(request, quiet, language, output_is_data=True)


@dataclass(slots=True)
class _Searched:
    trials: list[Trial]
    stopped: bool = False


@dataclass(slots=True)
class _Further:
    """What was asked for beside the forecast."""

    comparison: fit_comparison.Comparison | None
    searched: _Searched | None = None

    def as_text(self, arguments: argparse.Namespace, language: Language) -> list[str]:
        lines: list[str] = []
        if self.comparison is not None:
            lines += comparison_text.as_text(self.comparison, str(arguments.compare), language)
        if self.searched is not None:
            lines += fit_search.as_text(
                self.searched.trials, arguments.words, language, stopped=self.searched.stopped
            )
        return lines

    def as_json(self, arguments: argparse.Namespace, language: Language) -> dict[str, Any]:
        comparison, searched = self.comparison, self.searched
        return {
            "compared": comparison
            and comparison_text.as_json(comparison, str(arguments.compare), language),
            "search": searched
            and fit_search.as_json(
                searched.trials, arguments.words, language, stopped=searched.stopped
            ),
        }


class _Stopped(Exception):
    """By Ctrl+C."""


def _search(
    request: RunRequest, first: Forecast, arguments: argparse.Namespace, language: Language
) -> _Searched:
    """Further forecasts; Ctrl+C ends them, and what is known is kept."""
    searched = _Searched([])

    def run(change: Change) -> Trial:
        told = change_told(change)
        count = len(searched.trials) + 1
        note(
            _TRYING.filled(count=count, most=arguments.max_runs, change=told).in_language(language)
        )
        wanted = changed(request, change)
        shown = _again(wanted, arguments, language)
        if isinstance(shown, int):
            if shown == STATUS[Outcome.CANCELLED]:
                raise _Stopped
            return Trial(change, Outcome.NOT_STARTED, None)
        if shown.result.outcome is Outcome.CANCELLED:
            raise _Stopped
        return trial_of(change, wanted, shown.result, first)

    found = found_in(_file_of(request), request)
    tried = search(request, arguments.gpus, first, found, most_runs=arguments.max_runs, run=run)
    try:
        for trial in tried:
            searched.trials.append(trial)
    except (_Stopped, KeyboardInterrupt):
        searched.stopped = True
    return searched


def _file_of(request: RunRequest) -> Path | None:
    """The file whose arguments can be set on the command line: a shell script decides what it passes on."""
    try:
        file = with_its_file(request).script if request.module else request.script
    except RunNotPossible:
        return None
    return file if file.suffix == ".py" else None


def _print(
    forecast: Forecast | None,
    request: RunRequest,
    shown: Shown,
    further: _Further,
    arguments: argparse.Namespace,
    language: Language,
) -> None:
    kind, result = arguments.output_format, shown.result
    number = arguments.gpus * arguments.nodes
    is_answered = forecast is not None or result.outcome is Outcome.SUCCEEDED
    if kind == "json":
        told = answer.as_json(forecast, request, number, result, language)
        told |= further.as_json(arguments, language)
        print(json.dumps(told, ensure_ascii=False, indent=2))
        return
    style = style_for(arguments.color, sys.stderr)
    summarize(shown, language, style)
    if not is_answered:
        if kind == "github":
            print(run_as_github.render(result, language), end="")
        return
    lines = further.as_text(arguments, language)
    if kind == "github":
        must_fit = arguments.must_fit
        command = answer.as_github(
            forecast, request, number, language, must_fit=must_fit, more=lines
        )
        print(command, end="")
        return
    headline = answer.headline(forecast, request, number, language)
    color = "cyan" if forecast is None else _COLORS[forecast.fits]
    print(style_for(arguments.color, sys.stdout).paint(color, headline))
    for line in () if forecast is None else answer.details(forecast, language):
        print(f"  {line}")
    for line in lines:
        print(line)
