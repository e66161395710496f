"""What `explain FILE:LINE` prints: the findings on rank flow there, and what two ranks do in the function around."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ranksafe.checker.finding import Finding
from ranksafe.checker.registry import Registry
from ranksafe.cli.argument_types import positive
from ranksafe.cli.checker import Checker, context_of
from ranksafe.cli.options import UsedWrongly, read_analysis_options
from ranksafe.cli.output import diagram
from ranksafe.cli.output import text as text_output
from ranksafe.cli.reading import UnreadableSource, read_source
from ranksafe.cli.results import FileResult, Reported
from ranksafe.cli.terminal import fail, style_for
from ranksafe.localization import Language, Translated
from ranksafe.rank_flow.analysis import RankFlow
from ranksafe.rank_flow.diagram import rows
from ranksafe.source.notebook import is_notebook
from ranksafe.source.text import split_lines

_AREA = "RS4"
_HELP = {
    "gpus": Translated(
        "for FILE:LINE: number of GPUs the script will see",
        "用于 FILE:LINE：脚本可见的 GPU 数量",
    ),
    "config": Translated(
        "for FILE:LINE: configuration file to use", "用于 FILE:LINE：使用的配置文件"
    ),
}
_NO_FILE = Translated("{path}: no such file", "{path}：文件不存在")
_OUTSIDE = Translated(
    "{path}: there is no line {line}; the file has {count}",
    "{path}：没有第 {line} 行；该文件共 {count} 行",
)
_BROKEN = Translated(
    "{path}:{line}: cannot be explained, because it does not parse",
    "{path}:{line}：无法解析，因此无法说明",
)
_NO_FINDING = Translated("Nothing is found in {path}.", "在 {path} 中没有发现问题。")
_NEAREST = Translated(
    "Nothing is found on line {line}; the nearest finding is on line {nearest}:",
    "第 {line} 行没有提示；最近的提示在第 {nearest} 行：",
)
_NOTEBOOK = Translated(
    "{path}: a notebook's lines have no numbers; `ranksafe check {path}` shows what is found in each cell",
    "{path}：笔记本没有统一的行号；`ranksafe check {path}` 会显示每个单元格中的提示",
)
_NO_COLLECTIVES = Translated(
    "The code around this line performs no collective that could be followed.",
    "这一行所在的代码没有执行可跟踪的集合通信。",
)
_TOO_LARGE = Translated(
    "The function around this line does more than can be followed.",
    "这一行所在的函数过于复杂，无法跟踪。",
)
_USED_WRONGLY = 2


def add_place_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """What can be said of the launch and the configuration."""
    help_ = {key: text.in_language(language) for key, text in _HELP.items()}
    parser.add_argument("--gpus", type=positive, metavar="N", help=help_["gpus"])
    parser.add_argument("--config", type=Path, metavar="FILE", help=help_["config"])


def explain_place(path: Path, line: int, arguments: argparse.Namespace, language: Language) -> int:
    """Print what is found on a 1-based line, or nearest to it, and what the ranks do there; 2 where there is no such
    line."""

    def refuse(message: Translated, **values: object) -> int:
        text = message.filled(path=path, line=line, **values).in_language(language)
        return fail(text, _USED_WRONGLY)

    if not path.exists():
        return refuse(_NO_FILE)
    if is_notebook(path):
        return refuse(_NOTEBOOK)
    try:
        text = read_source(path).text
        lines = split_lines(text)
        count = len(lines) - (not lines[-1])
        if not 1 <= line <= count:
            return refuse(_OUTSIDE, count=count)
        options = read_analysis_options(_as_for_check(arguments))
    except UnreadableSource as error:
        return fail(f"{path}: {error.message.in_language(language)}", _USED_WRONGLY)
    except UsedWrongly as error:
        return fail(error.message.in_language(language), _USED_WRONGLY)
    context = context_of(path, options)
    analysis = Checker(Registry.load(), with_edits=False).analyse(path, text, context)
    options.report_problems(language)
    if analysis.status == "stale" or line - 1 in analysis.blanked:
        return refuse(_BROKEN)
    style = style_for(arguments.color, sys.stdout)
    found = [item for item in analysis.findings if _distance(item, line - 1) == 0]
    told = found
    if not found:
        told = sorted(analysis.findings, key=lambda item: _distance(item, line - 1))[:1]
        said = _NEAREST if told else _NO_FINDING
        nearest = told[0].range.start.line + 1 if told else 0
        print(said.filled(path=path, line=line, nearest=nearest).in_language(language))
    result = FileResult(path, tuple(map(Reported, told)))
    for piece in text_output.render([result], _lines, language, style):
        print(piece)
    module = analysis.module
    if module is None:
        print(_NO_COLLECTIVES.in_language(language))
        return 0
    traces = RankFlow(module, context.launch.gpus).traces_around(line - 1)
    drawn = [] if traces is None else rows(traces)
    if traces is not None and drawn:
        expects_parting = any(item.code.startswith(_AREA) for item in found)
        print(diagram.render(traces, drawn, path, language, style, expects_parting=expects_parting))
    else:
        print((_TOO_LARGE if traces is None else _NO_COLLECTIVES).in_language(language))
    return 0


def _distance(finding: Finding, line: int) -> int:
    """How many lines away from a 0-based line."""
    place = finding.range
    return max(place.start.line - line, line - place.end.line, 0)


def _lines(path: Path) -> list[str]:
    try:
        return split_lines(read_source(path).text)
    except UnreadableSource:
        return []


def _as_for_check(arguments: argparse.Namespace) -> argparse.Namespace:
    """The arguments of `check` as they are when only these are given."""
    return argparse.Namespace(
        paths=[], select=None, ignore=None, preview=None, launcher=None, assume=None, python=None,
        gpus=arguments.gpus, config=arguments.config,
    )  # fmt: skip
