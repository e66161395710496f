"""``ranksafe fit train.py``: does the script fit the memory of N GPUs?"""

from __future__ import annotations

import argparse
import json
import sys

from ranksafe.cli.argument_types import positive
from ranksafe.cli.output import forecast as answer
from ranksafe.cli.output import run_as_github
from ranksafe.cli.rehearse import steps
from ranksafe.cli.run_options import add_common_arguments, add_rehearsal_arguments, request_of
from ranksafe.cli.running import STATUS, Shown, show_run, summarize
from ranksafe.cli.terminal import note, style_for
from ranksafe.localization import Language, Translated
from ranksafe.rehearsal.settings import DEFAULT_GPUS
from ranksafe.runs.fit import Fits, Forecast, as_forecast, forecast_of, out_of_memory
from ranksafe.runs.model import Outcome, RunRequest, RunResult

_DEVICE_MODEL = "h100"
_STEPS = 3
"""Optimizers take their memory in the first step, so it is the second that shows the peak; one more to be sure."""
_HELP = {
    "gpus": Translated(
        "GPUs, per node (default: {default})", "每个节点的 GPU 数（默认：{default}）"
    ).filled(default=DEFAULT_GPUS),
    "steps": Translated(
        "N: stop after N optimizer steps (default: {default}); auto: cut long epochs, so that the script comes to its "
        "evaluation and its end; 0: run to the end, nothing cut",
        "N：在 N 个优化器步之后停止（默认：{default}）；auto：缩短过长的 epoch，使脚本能运行到评估和结束；"
        "0：运行到结束，不做缩减",
    ).filled(default=_STEPS),
    "must": Translated("status 1 where it does not fit", "放不下时以状态 1 退出"),
    "devices": Translated("GPUs", "GPU"),
}
_ONCE_MORE = Translated(
    "memory ran out: the same once more on GPUs without a bound, to see what it needs",
    "显存不足：在没有上限的 GPU 上再运行一次，以了解实际需求",
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
    parser.add_argument("--steps", type=steps, default=_STEPS, metavar="N|auto", help=text("steps"))
    parser.add_argument("--must-fit", action="store_true", help=text("must"))
    add_rehearsal_arguments(
        parser, language, title=text("devices"), device_model=_DEVICE_MODEL, for_memory=True
    )


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """Tell whether it fits; 0 answered, 1 it does not fit and must, or the script failed, 2 used wrongly or broken, 3
    simulation limit, 130 cancelled."""
    request = as_forecast(
        request_of(arguments, language, target=f"simulated:{arguments.gpus}", gpus=None)
    )
    shown = show_run(request, arguments, language, output_is_data=True)
    if isinstance(shown, int):
        return shown
    result = shown.result
    unbounded = None
    if out_of_memory(result) is not None:
        note(_ONCE_MORE.in_language(language))
        unbounded = _without_bound(request, arguments, language)
    forecast = forecast_of(request, arguments.gpus, result, unbounded)
    _print(forecast, request, shown, arguments, language)
    if forecast is None:
        return STATUS[result.outcome]
    return int(arguments.must_fit and forecast.fits is Fits.NO)


def _without_bound(
    request: RunRequest, arguments: argparse.Namespace, language: Language
) -> RunResult | None:
    quiet = argparse.Namespace(**{**vars(arguments), "quiet": True})
    shown = show_run(as_forecast(request, unbounded=True), quiet, language, output_is_data=True)
    return shown.result if isinstance(shown, Shown) else None


def _print(
    forecast: Forecast | None,
    request: RunRequest,
    shown: Shown,
    arguments: argparse.Namespace,
    language: Language,
) -> None:
    kind, result = arguments.output_format, shown.result
    number = arguments.gpus * arguments.nodes
    is_answered = forecast is not None or result.outcome is Outcome.SUCCEEDED
    if kind == "json":
        told = answer.as_json(forecast, request, number, result, language)
        print(json.dumps(told, ensure_ascii=False, indent=2))
        return
    style = style_for(arguments.color, sys.stderr)
    summarize(shown, language, style)
    if not is_answered:
        if kind == "github":
            print(run_as_github.render(result, language), end="")
        return
    if kind == "github":
        must_fit = arguments.must_fit
        print(answer.as_github(forecast, request, number, language, must_fit=must_fit), end="")
        return
    headline = answer.headline(forecast, request, number, language)
    color = "cyan" if forecast is None else _COLORS[forecast.fits]
    print(style_for(arguments.color, sys.stdout).paint(color, headline))
    for line in () if forecast is None else answer.details(forecast, language):
        print(f"  {line}")
