"""The history of a project's runs as a page with a link to each report: for editors that have no list of their own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ranksafe.localization import Language, Translated
from ranksafe.runs.records.comparison import Comparison
from ranksafe.runs.records.kept_runs import OUTCOMES, KeptRun, started_text
from ranksafe.runs.records.recorder import RESULT_FILE
from ranksafe.runs.report.elements import Content, Element, element
from ranksafe.runs.report.page import page, report

REPORT_FILE = "report.html"
_CLASSES = {"succeeded": "good", "failed": "bad", "silent-failure": "bad", "not-started": "bad"}


def write_report(run: KeptRun, language: Language, comparison: Comparison | None = None) -> Path:
    """The run's report, in its folder. Raises OSError."""
    return _write(run.directory / REPORT_FILE, report(run, language, comparison))


def write_history(runs: Sequence[KeptRun], project: Path, path: Path, language: Language) -> Path:
    """The page, and every report it links to that is not there yet. Raises OSError."""
    for run in runs:
        if run.result and not _is_current(run):
            write_report(run, language)
    heading = element("h1", _TITLE.filled(project=project.name))
    rows = [_row(run, path.parent) for run in runs]
    head = element("tr", *(element("th", text) for text in _COLUMNS))
    table = element("table", element("thead", head), element("tbody", *rows), class_="facts")
    content = element("div", table, class_="scroll") if rows else element("p", _NONE)
    text = page(f"{project.name} · ranksafe", [heading], [content], language, kind=_KIND)
    return _write(path, text)


def _is_current(run: KeptRun) -> bool:
    """Whether the run has a report that was written after its end."""
    try:
        written = (run.directory / REPORT_FILE).stat().st_mtime
        return written >= (run.directory / RESULT_FILE).stat().st_mtime
    except OSError:
        return False


def _row(run: KeptRun, folder: Path) -> Element:
    outcome = OUTCOMES.get(run.outcome, Translated(run.outcome, run.outcome))
    badge = element("span", outcome, class_=f"badge {_CLASSES.get(run.outcome, 'warn')}")
    name: Content = started_text(run) or run.run_id
    if (run.directory / REPORT_FILE).is_file():
        name = element(
            "a", name, href=Path(os.path.relpath(run.directory / REPORT_FILE, folder)).as_posix()
        )
    first = next(iter(run.failures), None)
    reason = "" if first is None else str(first.get("message", "")).partition("\n")[0][:300]
    seconds = "" if run.seconds is None else f"{run.seconds:.1f}"
    cells: tuple[Content, ...] = (
        name,
        run.script.name,
        run.target,
        badge,
        seconds,
        reason,
        run.run_id,
    )
    return element("tr", *(element("td", cell) for cell in cells))


def _write(path: Path, text: str) -> Path:
    """For the user's eyes only: a report holds code. In place of what is there, never through it: a run's folder may
    have been given by somebody else, with a link for its report."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


_KIND = Translated("ranksafe · past runs", "ranksafe · 历史运行")
_TITLE = Translated("Runs of {project}", "{project} 的运行")
_NONE = Translated("No run is kept.", "没有已保存的运行。")
_COLUMNS = (
    Translated("Started", "开始于"),
    Translated("Script", "脚本"),
    Translated("Target", "目标"),
    Translated("Outcome", "结果"),
    Translated("Seconds", "秒数"),
    Translated("First failure", "首个故障"),
    Translated("Run", "运行"),
)
