"""``ranksafe compare RUN RUN``: what changed between two runs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from ranksafe.cli.output_options import add_output_arguments
from ranksafe.cli.terminal import Style, fail, harmless, style_for
from ranksafe.localization import Language, Translated
from ranksafe.runs.records.comparison import (
    Comparison,
    compare,
    name_text,
    section_text,
    value_texts,
)
from ranksafe.runs.records.kept_runs import (
    KeptRun,
    NoSuchRun,
    outcome_text,
    run_named,
    started_text,
)

_BEFORE_HELP = Translated(
    "the earlier run (id, or its start or end)", "较早的运行（编号，或其开头或结尾）"
)
_AFTER_HELP = Translated(
    "the later run (default: the project's last run)", "较晚的运行（默认：当前项目的最近一次运行）"
)
_SECONDS = Translated("seconds", "秒数")
_SPEED = Translated("steps/s", "步/秒")
_SAME = Translated(
    "Nothing that was recorded differs: code, versions and launch are the same.",
    "记录的内容没有差异：代码、版本和启动方式均相同。",
)
_CODE = Translated("Code", "代码")


def add_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """The arguments of `compare`."""
    parser.add_argument("before", metavar="RUN", help=_BEFORE_HELP.in_language(language))
    parser.add_argument("after", metavar="RUN", nargs="?", help=_AFTER_HELP.in_language(language))
    add_output_arguments(parser, language)


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """Compare them; 0 compared, whatever differs, 2 no such run."""
    try:
        before = run_named(arguments.before, Path.cwd())
        after = run_named(arguments.after, Path.cwd())
    except NoSuchRun as error:
        return fail(error.message.in_language(language), 2)
    comparison = compare(before, after)
    if arguments.output_format == "json":
        print(json.dumps(comparison.as_json(), ensure_ascii=False, indent=2))
        return 0
    style = style_for(arguments.color, sys.stdout)
    print(harmless("\n".join(_lines(comparison, language, style))))
    return 0


def _lines(comparison: Comparison, language: Language, style: Style) -> Iterator[str]:
    before, after = comparison.before, comparison.after
    yield style.paint("red", f"--- {_head(before, language)}")
    yield style.paint("green", f"+++ {_head(after, language)}")
    yield _numbers(_SECONDS.in_language(language), before.seconds, after.seconds)
    yield _numbers(_SPEED.in_language(language), *comparison.speed)
    if comparison.is_same:
        yield _SAME.in_language(language)
    for section, changes in groupby(comparison.changes, key=lambda change: change.section):
        yield ""
        yield style.paint("bold", section_text(section).in_language(language))
        for change in changes:
            name = name_text(change).in_language(language)
            was, now = (text.in_language(language) for text in value_texts(change))
            yield f"  {name}: {style.paint('red', was)} → {style.paint('green', now)}"
    if comparison.code:
        yield ""
        yield style.paint("bold", _CODE.in_language(language))
        yield from (_painted(line, style) for line in comparison.code)


def _head(run: KeptRun, language: Language) -> str:
    outcome = outcome_text(run.outcome, language)
    return f"{run.run_id}  {started_text(run)}  {run.script.name}  {run.target}  {outcome}"


def _numbers(name: str, before: float | None, after: float | None) -> str:
    was, now = ("?" if value is None else f"{value:.3g}" for value in (before, after))
    return f"  {name}: {was} → {now}"


def _painted(line: str, style: Style) -> str:
    color = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return line if color is None else style.paint(color, line)
