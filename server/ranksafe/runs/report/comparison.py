"""What changed since another run, as a part of a report."""

from __future__ import annotations

from ranksafe.localization import Translated
from ranksafe.runs.records.comparison import Comparison, name_text, section_text, value_texts
from ranksafe.runs.records.kept_runs import started_text
from ranksafe.runs.report.elements import Content, Element, element


def comparison_section(comparison: Comparison) -> list[Element]:
    """Facts that differ, speed, and the code's diff."""
    before, after = comparison.before, comparison.after
    title = _TITLE.filled(run=before.run_id)
    found = [element("h2", title), element("p", started_text(before), class_="quiet")]
    head = element(
        "tr", element("th"), element("th"), element("th", _BEFORE), element("th", _AFTER)
    )
    rows = []
    for change in comparison.changes:
        was, now = value_texts(change)
        name = element("td", name_text(change), class_="name")
        section = element("th", section_text(change.section))
        rows.append(element("tr", section, name, element("td", was), element("td", now)))
    rows += [
        _numbers(_SECONDS, before.seconds, after.seconds),
        _numbers(_SPEED, *comparison.speed),
    ]
    table = element("table", element("thead", head), element("tbody", *rows), class_="facts")
    found.append(element("div", table, class_="scroll"))
    if comparison.code:
        found += [element("h3", _CODE), _diff(comparison.code)]
    else:
        found.append(element("p", _SAME_CODE))
    return found


def _numbers(name: Translated, before: float | None, after: float | None) -> Element:
    cells: list[Content] = ["–" if value is None else f"{value:.3g}" for value in (before, after)]
    return element(
        "tr", element("th", name), element("td"), *(element("td", cell) for cell in cells)
    )


def _diff(lines: tuple[str, ...]) -> Element:
    spans = []
    for line in lines:
        kind = {"+": "added", "-": "removed", "@": "head"}.get(line[:1])
        if line.startswith(("+++ ", "--- ")):
            kind = "head"
        spans.append(element("span", line or " ", class_=kind))
    return element("pre", *spans, class_="diff")


_TITLE = Translated("Compared with run {run}", "与运行 {run} 的比较")
_BEFORE = Translated("Then", "当时")
_AFTER = Translated("This run", "本次运行")
_SECONDS = Translated("Seconds", "秒数")
_SPEED = Translated("Steps/s", "步/秒")
_CODE = Translated("Code", "代码")
_SAME_CODE = Translated(
    "The code that was kept of both runs is the same.", "两次运行所保存的代码相同。"
)
