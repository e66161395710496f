"""``ranksafe runs``: the history of the project's runs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from ranksafe.cli.output_options import add_output_arguments
from ranksafe.cli.terminal import Style, display_width, harmless, style_for
from ranksafe.localization import Language, Translated
from ranksafe.runs.records.kept_runs import (
    KeptRun,
    all_runs,
    outcome_text,
    project_of,
    runs_of,
    started_text,
)

_ALL_HELP = Translated(
    "of every project, not only this one", "列出所有项目的运行，而不只是当前项目"
)
_NONE = Translated(
    "No run of {project} is kept. Start one with: ranksafe run train.py",
    "没有保存 {project} 的运行。用以下命令开始一次运行：ranksafe run train.py",
)
_NONE_AT_ALL = Translated(
    "No run is kept. Start one with: ranksafe run train.py",
    "没有保存任何运行。用以下命令开始一次运行：ranksafe run train.py",
)
_COLORS = {"succeeded": "green", "failed": "red", "silent-failure": "red", "not-started": "red"}
_LONGEST_REASON = 100


def add_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """The arguments of `runs`."""
    parser.add_argument("--all", action="store_true", help=_ALL_HELP.in_language(language))
    add_output_arguments(parser, language)


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """List them, the newest first; 0 even where there are none."""
    folder = Path.cwd()
    runs = all_runs() if arguments.all else runs_of(folder)
    if arguments.output_format == "json":
        print(json.dumps([run.as_json() for run in runs], ensure_ascii=False, indent=2))
        return 0
    if not runs:
        none = _NONE_AT_ALL if arguments.all else _NONE.filled(project=project_of(folder))
        print(none.in_language(language))
        return 0
    style = style_for(arguments.color, sys.stdout)
    rows = [_cells(run, language) for run in runs]
    widths = [max(display_width(row[column]) for row in rows) for column in range(5)]
    for run, row in zip(runs, rows, strict=True):
        print(harmless(_line(run, row, widths, style)))
    return 0


def reason_of(run: KeptRun) -> str:
    """The root cause in one line: message, rank, place; empty where there is none."""
    first = next(iter(run.failures), None)
    if first is None:
        return ""
    text = str(first.get("message") or first.get("kind") or "").partition("\n")[0]
    if len(text) > _LONGEST_REASON:
        text = text[: _LONGEST_REASON - 1] + "…"
    location = first.get("location")
    row = location.get("row") if isinstance(location, dict) else None
    places = [] if first.get("rank") is None else [f"rank {first['rank']}"]
    if first.get("filename") and row:
        places.append(f"{Path(str(first['filename'])).name}:{row}")
    return f"{text} ({', '.join(places)})" if places else text


def _cells(run: KeptRun, language: Language) -> list[str]:
    seconds = "" if run.seconds is None else f"{run.seconds:.0f} s"
    outcome = outcome_text(run.outcome, language)
    cells = [
        run.run_id,
        started_text(run),
        run.script.name,
        run.target,
        outcome,
        seconds,
        reason_of(run),
    ]
    # One line for each run.
    return [cell.replace("\n", "\ufffd") for cell in cells]


def _line(run: KeptRun, cells: Sequence[str], widths: Sequence[int], style: Style) -> str:
    padded = [
        cell + " " * (width - display_width(cell))
        for cell, width in zip(cells[:5], widths, strict=True)
    ]
    padded[4] = style.paint(_COLORS.get(run.outcome, "yellow"), padded[4])
    return "  ".join((*padded, f"{cells[5]:>7}", cells[6])).rstrip()
