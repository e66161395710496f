"""Puts a report together."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import get_args

from ranksafe import __version__
from ranksafe.localization import Language, Translated
from ranksafe.runs.records.comparison import Comparison
from ranksafe.runs.records.forecast import load_forecast
from ranksafe.runs.records.kept_runs import KeptRun
from ranksafe.runs.records.snapshot import read_snapshot
from ranksafe.runs.records.timeline import load_timeline
from ranksafe.runs.report.comparison import comparison_section
from ranksafe.runs.report.elements import LANGUAGE_TAGS, Element, element, raw, to_html
from ranksafe.runs.report.facts import command_section, environment_section, notes_section
from ranksafe.runs.report.failures import failures_section
from ranksafe.runs.report.log_tail import log_section
from ranksafe.runs.report.memory import memory_section
from ranksafe.runs.report.plots import plot_script, plot_style, plots_section
from ranksafe.runs.report.timeline_drawing import timeline_section
from ranksafe.runs.report.verdict import title_of, verdict

_HERE = Path(__file__).parent


def report(run: KeptRun, language: Language = "en", comparison: Comparison | None = None) -> str:
    """The report of a run, in both languages; ``language`` is the one that is shown first.

    With ``comparison`` a section tells what changed since another run. Raises nothing for damaged evidence: what cannot
    be read is left out.
    """
    snapshot = read_snapshot(run.directory)
    timeline = load_timeline(run.directory)
    ranks = run.result.get("ranks")
    reports = [each for each in ranks if isinstance(each, dict)] if isinstance(ranks, list) else []
    plots = plots_section(timeline)
    forecast = load_forecast(run.directory)
    memory = memory_section(forecast)
    content = [
        *memory,
        *failures_section(run, snapshot),
        *(comparison_section(comparison) if comparison is not None else ()),
        *timeline_section(timeline, reports),
        *plots,
        *notes_section(run),
        *command_section(run),
        *environment_section(run),
        *log_section(run.directory / "log.txt"),
    ]
    return page(
        title_of(run, language, forecast),
        verdict(run, forecast),
        content,
        language,
        with_plots=bool(plots or memory),
    )


def page(
    title: str,
    top: list[Element],
    content: list[Element],
    language: Language,
    *,
    with_plots: bool = False,
    kind: Translated | None = None,
) -> str:
    """A whole document in the reports' style, with a switch between the languages; ``kind``: what its first line says
    it is, if it is no report."""
    style = (_HERE / "style.css").read_text(encoding="utf-8")
    styles = [style, *([plot_style()] if with_plots else [])]
    scripts = [plot_script()] if with_plots else []
    head = element(
        "head",
        element("meta", charset="utf-8"),
        _policy(styles, scripts),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="generator", content=f"ranksafe {__version__}"),
        element("title", title),
        *(raw("style", text) for text in styles),
    )
    body = element(
        "body",
        element("header", _top_line(kind or _KIND, language), *top),
        element("main", *content, element("footer", f"ranksafe {__version__}")),
        *(raw("script", text) for text in scripts),
    )
    return to_html(element("html", head, body, lang=LANGUAGE_TAGS[language]))


def _policy(styles: list[str], scripts: list[str]) -> Element:
    """Nothing may be loaded or sent, and no style and no script but ours counts: a second lock behind escaping."""
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src {_hashes(styles)}",
            f"script-src {_hashes(scripts)}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    meta = element("meta", content=policy)
    meta.set("http-equiv", "Content-Security-Policy")
    return meta


def _hashes(texts: list[str]) -> str:
    digests = (hashlib.sha256(text.encode("utf-8")).digest() for text in texts)
    found = [f"'sha256-{base64.b64encode(digest).decode('ascii')}'" for digest in digests]
    return " ".join(found) or "'none'"


def _top_line(kind: Translated, language: Language) -> Element:
    choices: list[Element] = []
    for each in get_args(Language):
        name = f"language-{each}"
        checked = "" if each == language else None
        box = element("input", type="radio", name="language", id=name, checked=checked)
        choices += [box, element("label", _NAMES[each], for_=name)]
    switch = element("span", *choices, class_="switch", role="group", aria_label="Language / 语言")
    return element("div", element("span", kind), switch, class_="top")


_NAMES = {"en": "English", "zh-cn": "中文"}
_KIND = Translated("ranksafe · report of a run", "ranksafe · 运行报告")
