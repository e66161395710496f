"""The failures of a run: what happened, what it means, the code as it was, how it was reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ranksafe.localization import Translated
from ranksafe.runs.records.kept_runs import KeptRun
from ranksafe.runs.records.snapshot import Snapshot
from ranksafe.runs.report.elements import Content, Element, element

MOST_FAILURES = 64
_AROUND = 4
"""Lines shown before and after the one that failed."""
_LONGEST_MESSAGE = 20_000
_LONGEST_LINE = 500
_LONGEST_EXCERPT = 100


def failures_section(run: KeptRun, snapshot: Snapshot) -> list[Element]:
    """A card per failure, root causes first; empty where there is none."""
    explanations = run.sentences("explanations")
    cards = [
        _card(failure, explanation, snapshot)
        for failure, explanation in zip(run.failures, explanations, strict=False)
    ]
    limit = run.result.get("simulation_limit")
    if isinstance(limit, dict):
        meaning = next(iter(run.sentences("limit_explanation")), Translated("", ""))
        cards.append(_card({**limit, "root_cause": False}, meaning, snapshot))
    if not cards:
        return []
    found = [element("h2", _TITLE if run.failures else _LIMIT), *cards[:MOST_FAILURES]]
    if len(cards) > MOST_FAILURES:
        more = _MORE.filled(count=len(cards) - MOST_FAILURES)
        found.append(element("p", more, class_="quiet"))
    return found


def _card(failure: Mapping[str, Any], explanation: Translated, snapshot: Snapshot) -> Element:
    root = failure.get("root_cause") is True
    head: list[Content] = [
        element("span", _ROOT if root else _FOLLOWS, class_="badge bad" if root else "badge quiet")
    ]
    if failure.get("rank") is not None:
        head.append(element("span", f" rank {failure['rank']}", class_="quiet"))
    if failure.get("code"):
        head.append(element("span", f" · {failure['code']}", class_="quiet"))
    message = str(failure.get("message") or failure.get("kind") or "")
    if len(message) > _LONGEST_MESSAGE:
        message = message[:_LONGEST_MESSAGE] + " …"
    parts: list[Content] = [
        element("p", *head),
        element("p", message, class_="message"),
        element("p", explanation),
    ]
    excerpt = failure.get("excerpt")
    if isinstance(excerpt, list) and excerpt:
        lines = [_cut(str(line)) for line in excerpt[:_LONGEST_EXCERPT]]
        parts.append(element("pre", "\n".join(lines)))
    row = _row(failure)
    name = failure.get("filename")
    if isinstance(name, str) and row is not None:
        place = element("p", _link(name, row), class_="place")
        parts += [place, *_code(failure, name, row, snapshot)]
    parts += _frames(failure)
    return element("section", *parts, class_="failure root" if root else "failure")


def _code(failure: Mapping[str, Any], name: str, row: int, snapshot: Snapshot) -> Iterator[Element]:
    """The lines around, as they were when the run started."""
    lines = snapshot.lines(name)
    if not 0 < row <= len(lines):
        frame = next((each for each in reversed(_frame_list(failure)) if _row(each) == row), None)
        source = "" if frame is None else str(frame.get("source", ""))
        if source:
            yield _table([(row, source, True)], failure)
        return
    first, last = max(1, row - _AROUND), min(len(lines), row + _AROUND)
    yield _table(
        [(number, lines[number - 1], number == row) for number in range(first, last + 1)], failure
    )


def _table(lines: Sequence[tuple[int, str, bool]], failure: Mapping[str, Any]) -> Element:
    rows = []
    for number, text, hit in lines:
        cell: Content = _cut(text)
        if hit:
            cell = _marked(text, failure)
        rows.append(
            element(
                "tr",
                element("td", str(number)),
                element("td", cell or " "),
                class_="hit" if hit else None,
            )
        )
    return element("table", element("tbody", *rows), class_="code")


def _marked(text: str, failure: Mapping[str, Any]) -> Content:
    """The line with what failed underlined; the whole statement where no column is known."""
    start = _at(failure.get("location"), "column")
    end = _at(failure.get("end_location"), "column")
    same_line = _at(failure.get("end_location"), "row") == _row(failure)
    first = len(text) - len(text.lstrip()) if start is None else start - 1
    last = end - 1 if end is not None and same_line else len(text.rstrip())
    if not 0 <= first < last <= len(text) or len(text) > _LONGEST_LINE:
        return element("mark", _cut(text))
    return [text[:first], element("mark", text[first:last]), text[last:]]


def _frames(failure: Mapping[str, Any]) -> Iterator[Element]:
    frames = _frame_list(failure)
    own = [frame for frame in frames if frame.get("in_user_code")]
    if len(own) > 1:
        summary = element("summary", _OWN_FRAMES.filled(count=len(own)))
        yield element("details", summary, _list(own), open="")
    if len(frames) > len(own):
        yield element(
            "details", element("summary", _FRAMES.filled(count=len(frames))), _list(frames)
        )


def _list(frames: Sequence[Mapping[str, Any]]) -> Element:
    """Outermost first, as Python prints them."""
    items = []
    for frame in frames:
        place = _link(str(frame.get("filename")), _row(frame))
        content: list[Content] = [place, " ", element("b", str(frame.get("function", "")))]
        source = str(frame.get("source", "")).strip()
        if source:
            content += [element("br"), element("code", _cut(source))]
        library = None if frame.get("in_user_code") else "library"
        items.append(element("li", *content, class_=library))
    return element("ul", *items, class_="frames")


def _link(name: str, row: int | None) -> Content:
    """The place, as a link that opens it in VS Code (https://code.visualstudio.com/docs/configure/command-line); the
    panel in which the extension shows a report opens it in that window."""
    text = f"{name}:{row}"
    path = Path(name)
    if not path.is_absolute() or row is None:
        return text
    return element(
        "a",
        text,
        href=f"vscode://file/{quote(path.as_posix().lstrip('/'), errors='replace')}:{row}",
    )


def _frame_list(failure: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    frames = failure.get("frames")
    return (
        [frame for frame in frames if isinstance(frame, dict)] if isinstance(frames, list) else []
    )


def _row(value: Mapping[str, Any]) -> int | None:
    return _at(value.get("location"), "row")


def _at(location: Any, key: str) -> int | None:
    value = location.get(key) if isinstance(location, dict) else None
    return value if isinstance(value, int) else None


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_LINE else text[:_LONGEST_LINE] + " …"


_TITLE = Translated("Failures", "故障")
_LIMIT = Translated("What the simulation could not do", "模拟未能做到的部分")
_ROOT = Translated("root cause", "根本原因")
_FOLLOWS = Translated("follows", "连带")
_OWN_FRAMES = Translated(
    "Call chain in your code ({count} frames)", "您代码中的调用链（{count} 帧）"
)
_FRAMES = Translated(
    "Whole call chain, libraries included ({count} frames)", "完整调用链，包括库（{count} 帧）"
)
_MORE = Translated("{count} more failures are not shown.", "另有 {count} 个故障未显示。")
