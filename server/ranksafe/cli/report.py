"""``ranksafe report``: a run as one HTML file."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path

from ranksafe.cli.terminal import CANNOT_WRITE, fail, note
from ranksafe.localization import Language, Translated
from ranksafe.runs.records.comparison import compare
from ranksafe.runs.records.kept_runs import NoSuchRun, run_named
from ranksafe.runs.report.history_page import REPORT_FILE, write_report
from ranksafe.runs.report.page import report

_RUN_HELP = Translated(
    "id of a run, or its start or end (default: the project's last run)",
    "运行的编号，或其开头或结尾（默认：当前项目的最近一次运行）",
)
_OUTPUT_HELP = Translated(
    "file to write (default: report.html in the run's folder)",
    "要写入的文件（默认：运行文件夹中的 report.html）",
)
_COMPARE_HELP = Translated("also show what changed since that run", "同时显示自该次运行以来的变化")
_OPEN_HELP = Translated("open it in the browser", "在浏览器中打开")
_NO_BROWSER = Translated("no browser was found", "找不到浏览器")


def add_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """The arguments of `report`."""
    parser.add_argument("run", nargs="?", metavar="RUN", help=_RUN_HELP.in_language(language))
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help=_OUTPUT_HELP.in_language(language)
    )
    parser.add_argument("--compare", metavar="RUN", help=_COMPARE_HELP.in_language(language))
    parser.add_argument("--open", action="store_true", help=_OPEN_HELP.in_language(language))


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """Write the report and print its path; 0 written, 2 no such run or no permission."""
    try:
        run = run_named(arguments.run, Path.cwd())
        other = None if arguments.compare is None else run_named(arguments.compare, Path.cwd())
    except NoSuchRun as error:
        return fail(error.message.in_language(language), 2)
    comparison = None if other is None else compare(other, run)
    path: Path = arguments.output or run.directory / REPORT_FILE
    try:
        if arguments.output is None:
            write_report(run, language, comparison)
        else:
            path.write_text(report(run, language, comparison), encoding="utf-8")
    except OSError as error:
        message = CANNOT_WRITE.filled(path=path, reason=error.strerror)
        return fail(message.in_language(language), 2)
    print(path)
    if arguments.open and not webbrowser.open(path.absolute().as_uri()):
        note(_NO_BROWSER.in_language(language))
    return 0
