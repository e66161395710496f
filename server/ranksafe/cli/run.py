"""``ranksafe run train.py``: start a script on GPUs, and draw its failure on the source."""

from __future__ import annotations

import argparse
import json
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ranksafe.cli.render_failure import render_failure
from ranksafe.cli.terminal import Style, fail, note, style_for
from ranksafe.localization import Language, Translated
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.log import mark
from ranksafe.runs.model import Outcome, RunEvent, RunRequest, RunResult
from ranksafe.runs.serialize import SCHEMA, to_json
from ranksafe.runs.start import Run, start_run

_STATUS = {
    Outcome.SUCCEEDED: 0,
    Outcome.FAILED: 1,
    Outcome.SILENT_FAILURE: 1,
    Outcome.NOT_STARTED: 2,
    Outcome.SIMULATION_LIMIT: 3,
    Outcome.CANCELLED: 130,
}
_LAUNCHER_LINES = 100
_HELP = {
    "script": Translated(
        "script to run; its arguments come after --", "要运行的脚本；其参数写在 -- 之后"
    ),
    "target": Translated("where to run (default: local)", "运行目标（默认：local）"),
    "gpus": Translated("number of ranks (default: all free GPUs)", "rank 数（默认：所有空闲 GPU）"),
    "cpu": Translated("use gloo ranks on the CPU", "使用 CPU 上的 gloo rank"),
    "steps": Translated("stop after N optimizer steps", "在 N 个优化器步之后停止"),
    "config": Translated("accelerate configuration to use", "使用的 accelerate 配置文件"),
    "python": Translated(
        "the Python that has torch (default: the active or .venv one)",
        "装有 torch 的 Python（默认：当前激活的环境或 .venv）",
    ),
    "timeout": Translated("stop after that many seconds", "在指定秒数后停止"),
    "format": Translated("how to print the result", "结果的输出格式"),
    "color": Translated("when to use colours", "何时使用颜色"),
}
_OUTCOMES = {
    Outcome.SUCCEEDED: Translated("succeeded in {seconds} s", "成功，用时 {seconds} 秒"),
    Outcome.FAILED: Translated("failed after {seconds} s", "{seconds} 秒后失败"),
    Outcome.SILENT_FAILURE: Translated(
        "ended without an error, but is wrong ({seconds} s)", "没有报错，但结果有误（{seconds} 秒）"
    ),
    Outcome.NOT_STARTED: Translated("was not started", "未能启动"),
    Outcome.SIMULATION_LIMIT: Translated("reached a limit of the simulation", "达到模拟的限制"),
    Outcome.CANCELLED: Translated("cancelled after {seconds} s", "{seconds} 秒后被取消"),
}
_LOG = Translated("log: {path}", "日志：{path}")
_CANCELLING = Translated(
    "cancelling: ending every process of the run", "正在取消：结束此次运行的所有进程"
)


def add_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """The arguments of `run`; those after ``--`` are the script's."""

    def text(key: str) -> str:
        return _HELP[key].in_language(language)

    parser.add_argument("script", type=Path, metavar="SCRIPT", help=text("script"))
    parser.add_argument("--target", default="local", metavar="T", help=text("target"))
    parser.add_argument("--gpus", type=_positive, metavar="N", help=text("gpus"))
    parser.add_argument("--cpu-ranks", action="store_true", help=text("cpu"))
    parser.add_argument("--steps", type=_positive, metavar="N", help=text("steps"))
    parser.add_argument("--config-file", type=Path, metavar="FILE", help=text("config"))
    parser.add_argument("--python", type=Path, metavar="PATH", help=text("python"))
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help=text("timeout"))
    parser.add_argument(
        "--output-format", choices=["text", "json"], default="text", help=text("format")
    )
    parser.add_argument(
        "--color", choices=["auto", "always", "never"], default="auto", help=text("color")
    )
    _take_script_arguments(parser)


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """Run it; 0 succeeded, 1 failed, 2 used wrongly or broken, 3 simulation limit, 130 cancelled."""
    as_json = arguments.output_format == "json"
    request = RunRequest(
        script=arguments.script,
        target=arguments.target,
        gpus=arguments.gpus,
        cpu_ranks=arguments.cpu_ranks,
        steps=arguments.steps,
        arguments=tuple(arguments.script_arguments),
        config_file=arguments.config_file,
        interpreter=arguments.python,
        working_directory=Path.cwd(),
        timeout_seconds=arguments.timeout,
        language=language,
    )
    screen = _Screen(as_json, style_for(arguments.color, sys.stderr))
    try:
        run = start_run(request, screen.show)
    except RunNotPossible as error:
        if as_json:
            print(json.dumps(_not_started(request, error, language), ensure_ascii=False))
        return fail(error.message.in_language(language), 2)
    result = _wait(run, language)
    if result.failures and result.failures[0].rank is None:
        screen.show_launcher()
    if as_json:
        print(json.dumps(to_json(result, language), ensure_ascii=False, indent=2))
    else:
        sys.stdout.flush()
        _summarize(result, language, style_for(arguments.color, sys.stderr))
    return _STATUS[result.outcome]


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

    def __init__(self, as_json: bool, style: Style) -> None:
        self._as_json = as_json
        self._style = style
        self._launcher: deque[str] = deque(maxlen=_LAUNCHER_LINES)

    def show(self, event: RunEvent) -> None:
        """Print an event; the script's standard output goes to ours unless that is for JSON."""
        if event.kind == "output" and event.rank is None:
            self._launcher.append(event.text)
        elif event.kind == "output":
            stream = sys.stderr if self._as_json or event.stream == "stderr" else sys.stdout
            print(f"{self._marked(event.rank)} {event.text}", file=stream, flush=True)
        elif event.kind in ("status", "step"):
            print(self._style.paint("cyan", f"ranksafe: {event.text}"), file=sys.stderr, flush=True)

    def show_launcher(self) -> None:
        """Print what was kept back: no rank has a reason of its own."""
        for line in self._launcher:
            print(f"{self._marked(None)} {line}", file=sys.stderr)

    def _marked(self, rank: int | None) -> str:
        return self._style.paint("dim", mark(rank))


def _summarize(result: RunResult, language: Language, style: Style) -> None:
    for failure in result.failures:
        print("\n" + render_failure(failure, language, style), file=sys.stderr)
    color = "green" if result.outcome is Outcome.SUCCEEDED else "red"
    sentence = _OUTCOMES[result.outcome].filled(seconds=round(result.seconds, 1))
    lines = [style.paint(color, f"ranksafe: {sentence.in_language(language)}")]
    lines += [f"  {limit}" for limit in result.limits]
    if result.log is not None:
        lines.append("  " + _LOG.filled(path=result.log).in_language(language))
    print("\n" + "\n".join(lines), file=sys.stderr)


def _not_started(request: RunRequest, error: RunNotPossible, language: Language) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "run_id": None,
        "outcome": Outcome.NOT_STARTED.value,
        "target": request.target,
        "command": [],
        "modified": [],
        "limits": [error.message.in_language(language)],
        "ranks": [],
        "failures": [],
        "seconds": 0.0,
        "log": None,
    }


def _take_script_arguments(parser: argparse.ArgumentParser) -> None:
    """Set what follows ``--`` aside before argparse sees it.

    argparse gives a positional with ``nargs="*"`` its (empty) share as soon as SCRIPT is read, and then refuses
    what comes after further options (CPython 3.10 to 3.13).
    """
    parse = parser.parse_args
    parser.set_defaults(script_arguments=[])

    def parse_args(words: Sequence[str] | None = None, namespace: Any = None) -> Any:
        given = list(sys.argv[1:] if words is None else words)
        at = given.index("--") if "--" in given else len(given)
        arguments = parse(given[:at], namespace)
        arguments.script_arguments = given[at + 1 :]
        return arguments

    parser.parse_args = parse_args  # type: ignore[method-assign, assignment]


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number
