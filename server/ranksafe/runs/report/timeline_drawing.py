"""The ranks' lives side by side, as SVG: it prints, scales, and needs no script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ranksafe.localization import Translated
from ranksafe.runs.records.timeline import Lane, Span, Timeline
from ranksafe.runs.report.elements import Content, Element, element

MOST_LANES = 128
_WIDTH = 1040.0
_HOST_AT = 54.0
_RIGHT = 26.0
_BAR = 18.0
_TOP = 8.0
_LONGEST_HOST = 24
_MANY = 16
"""More ranks than that are drawn closer together, and their table is folded."""
_MOST_TICKS = 400
_NARROWEST = 1.5
_LETTER = 7.0
_GOOD = frozenset({"succeeded"})
_BAD = frozenset({"exception", "silent-failure", "exit"})
_QUIET = frozenset({"stopped", "unknown"})


def timeline_section(timeline: Timeline, ranks: Sequence[Mapping[str, Any]]) -> list[Element]:
    """The drawing, its legend, and a table of the ranks; empty where no rank left a journal.

    ``ranks``: the result's reports.
    """
    lanes = timeline.lanes
    if not lanes and not ranks:
        return []
    reports = {rank: report for report in ranks if isinstance(rank := report.get("rank"), int)}
    found = [element("h2", _TITLE)]
    if lanes and timeline.end > timeline.start:
        found.append(element("div", _drawing(timeline, reports), class_="scroll"))
        found.append(_legend(lanes, reports))
        if len({lane.host for lane in lanes if lane.host}) > 1:
            found.append(element("p", _CLOCKS, class_="quiet"))
    if len(lanes) > MOST_LANES:
        found.append(element("p", _MORE.filled(count=len(lanes) - MOST_LANES), class_="quiet"))
    found.append(_table(lanes, reports))
    return found


def _drawing(timeline: Timeline, reports: Mapping[Any, Mapping[str, Any]]) -> Element:
    lanes = timeline.lanes[:MOST_LANES]
    length = timeline.end - timeline.start
    gutter = _HOST_AT + 14 + _LETTER * max((len(_short(lane.host)) for lane in lanes), default=0)
    scale = (_WIDTH - gutter - _RIGHT) / length
    height = _BAR + (4 if len(lanes) > _MANY else 16)
    bottom = _TOP + len(lanes) * height

    def at(time: float) -> float:
        return gutter + (time - timeline.start) * scale

    parts: list[Content] = []
    for seconds in _round_seconds(length):
        x = at(timeline.start + seconds)
        parts.append(element("line", x1=_n(x), x2=_n(x), y1=_n(_TOP), y2=_n(bottom), class_="grid"))
        label = f"{seconds:g} s"
        parts.append(
            element("text", label, x=_n(x), y=_n(bottom + 16), text_anchor="middle", class_="soft")
        )
    for number, lane in enumerate(lanes):
        middle = _TOP + number * height + height / 2
        parts += _lane(lane, middle, at, timeline, reports.get(lane.rank, {}))
    return element(
        "svg",
        *parts,
        class_="timeline",
        viewBox=f"0 0 {_n(_WIDTH)} {_n(bottom + 24)}",
        role="img",
    )


def _lane(
    lane: Lane, middle: float, at: Any, timeline: Timeline, report: Mapping[str, Any]
) -> Iterator[Element]:
    name = f"rank {lane.rank}"
    yield element("text", name, x="0", y=_n(middle + 4))
    host = _short(lane.host)
    if host:
        yield element("text", host, x=_n(_HOST_AT), y=_n(middle + 4), class_="soft")
    start = lane.started if lane.started is not None else timeline.start
    end = lane.ended if lane.ended is not None else timeline.end
    yield _bar("lane", at(start), at(end), middle, f"{name}: {end - start:.1f} s")
    for time, step in _thinned(lane.steps):
        x = at(time)
        yield element(
            "line",
            element("title", f"{name}, step {step}, {time - timeline.start:.2f} s"),
            x1=_n(x),
            x2=_n(x),
            y1=_n(middle - _BAR / 2),
            y2=_n(middle),
            class_="step",
        )
    for span in lane.spans:
        yield _bar(span.kind, at(span.start), at(span.end), middle, _span_title(name, span))
        label = f"{span.label.partition(' ')[0]} {span.place}".strip()[:60]
        if at(span.end) - at(span.start) > _LETTER * len(label) + _LETTER:
            yield element("text", label, x=_n(at(span.start) + 5), y=_n(middle + 4))
    entered = [(mark.time, mark.label) for mark in lane.marks if mark.kind == "collective"]
    for time, label in _thinned(sorted(entered)):
        x, y1, y2 = _n(at(time)), _n(middle + 1), _n(middle + _BAR / 2)
        title = element("title", f"{name}: {label}, {time - timeline.start:.2f} s")
        yield element("line", title, x1=x, x2=x, y1=y1, y2=y2, class_="entered")
    for mark in lane.marks:
        if mark.kind in _BAD:
            yield _diamond("end-bad", at(mark.time), middle, f"{name}: {mark.label or mark.kind}")
    kind = _end_kind(lane, report)
    if kind is not None:
        yield _circle(kind, at(end), middle, f"{name}: {report.get('outcome', 'unknown')}")


def _short(host: str) -> str:
    """A host's name without its domain."""
    name = host if host.replace(".", "").isdigit() else host.partition(".")[0]
    return name if len(name) <= _LONGEST_HOST else name[: _LONGEST_HOST - 1] + "…"


def _end_kind(lane: Lane, report: Mapping[str, Any]) -> str | None:
    """How the end of a lane is drawn; None where a failure is drawn there already."""
    if any(mark.kind in ("exception", "exit") for mark in lane.marks):
        return None
    outcome = str(report.get("outcome", "unknown"))
    return "end-good" if outcome in _GOOD else "end-quiet" if outcome in _QUIET else "end-bad"


def _span_title(name: str, span: Span) -> str:
    where = f", {span.place}" if span.place else ""
    return (
        f"{name}: {span.label}{where}, {span.end - span.start:.2f} s{' …' if span.is_open else ''}"
    )


def _bar(kind: str, start: float, end: float, middle: float, title: str) -> Element:
    return element(
        "rect",
        element("title", title),
        x=_n(start),
        y=_n(middle - _BAR / 2),
        width=_n(max(_NARROWEST, end - start)),
        height=_n(_BAR),
        rx="2",
        class_=kind,
    )


def _diamond(kind: str, x: float, y: float, title: str) -> Element:
    points = f"{_n(x - 8)},{_n(y)} {_n(x)},{_n(y - 8)} {_n(x + 8)},{_n(y)} {_n(x)},{_n(y + 8)}"
    return element("polygon", element("title", title), points=points, class_=kind)


def _circle(kind: str, x: float, y: float, title: str) -> Element:
    return element("circle", element("title", title), cx=_n(x), cy=_n(y), r="6", class_=kind)


def _legend(lanes: Sequence[Lane], reports: Mapping[Any, Mapping[str, Any]]) -> Element:
    """Only what is drawn."""
    shapes: list[tuple[Element, Translated]] = [
        (element("rect", x="0", y="1", width="18", height="10", rx="2", class_="lane"), _ALIVE)
    ]
    if any(lane.steps for lane in lanes):
        tick = element("line", x1="9", x2="9", y1="0", y2="12", class_="step")
        shapes.append((tick, _STEP))
    if any(mark.kind == "collective" for lane in lanes for mark in lane.marks):
        tick = element("line", x1="9", x2="9", y1="0", y2="12", class_="entered")
        shapes.append((tick, _ENTERED))
    for kind, text in (("collective", _COLLECTIVE), ("stall", _STALL)):
        if any(span.kind == kind for lane in lanes for span in lane.spans):
            box = element("rect", x="0", y="1", width="18", height="10", rx="2", class_=kind)
            shapes.append((box, text))
    ends = {_end_kind(lane, reports.get(lane.rank, {})) for lane in lanes}
    if "end-bad" in ends or any(mark.kind in _BAD for lane in lanes for mark in lane.marks):
        shapes.append((element("polygon", points="3,6 9,0 15,6 9,12", class_="end-bad"), _FAILED))
    for kind, text in (("end-good", _ENDED), ("end-quiet", _STOPPED)):
        if kind in ends:
            shapes.append((element("circle", cx="9", cy="6", r="5", class_=kind), text))
    items = [
        element("li", element("svg", shape, viewBox="0 0 18 12"), text) for shape, text in shapes
    ]
    return element("ul", *items, class_="legend timeline")


def _table(lanes: Sequence[Lane], reports: Mapping[Any, Mapping[str, Any]]) -> Element:
    by_rank = {lane.rank: lane for lane in lanes}
    rows = []
    for rank in sorted({*by_rank, *reports}):
        lane, report = by_rank.get(rank, Lane(rank)), reports.get(rank, {})
        rate = lane.steps_per_second
        cells: list[Content] = [
            str(rank),
            str(report.get("host") or lane.host),
            RANK_OUTCOMES.get(str(report.get("outcome")), _UNKNOWN),
            _exit_text(report.get("exit")),
            "" if lane.last_step is None else str(lane.last_step),
            "" if rate is None else f"{rate:.3g}",
            "" if str(report.get("outcome")) in _GOOD else lane.last_seen_at,
        ]
        rows.append(element("tr", *(element("td", cell, class_="number") for cell in cells)))
    head = element("tr", *(element("th", text) for text in _COLUMNS))
    table = element("table", element("thead", head), element("tbody", *rows), class_="facts")
    scrolled = element("div", table, class_="scroll")
    if len(rows) <= _MANY:
        return scrolled
    return element("details", element("summary", _ALL.filled(count=len(rows))), scrolled)


def _exit_text(status: Any) -> str:
    if not isinstance(status, int):
        return ""
    return str(status) if status >= 0 else f"signal {-status}"


def _thinned(steps: Sequence[tuple[float, Any]]) -> Sequence[tuple[float, Any]]:
    return steps[:: max(1, -(-len(steps) // _MOST_TICKS))]


def _round_seconds(length: float) -> list[float]:
    """About eight round moments from 0 to ``length``."""
    unit = 10.0**-3
    while unit * 10 < length:
        unit *= 10
    step = next(
        (unit * factor for factor in (0.2, 0.5, 1, 2, 5) if length / (unit * factor) <= 10), unit
    )
    return [round(step * number, 6) for number in range(int(length / step) + 1)]


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


RANK_OUTCOMES = {
    "succeeded": Translated("succeeded", "成功"),
    "failed": Translated("failed", "失败"),
    "killed": Translated("killed", "被强制终止"),
    "stopped": Translated("stopped", "被停止"),
}
_UNKNOWN = Translated("unknown", "未知")
_TITLE = Translated("Timeline of the ranks", "各 rank 的时间线")
_ALIVE = Translated("the rank lives", "rank 存活")
_STEP = Translated(
    "optimizer step (the first ones, later about one a second)",
    "优化器步（最初几步，之后约每秒一个）",
)
_ENTERED = Translated("collective entered (the latest ones)", "进入集合通信（最近的若干次）")
_COLLECTIVE = Translated("waiting for other ranks", "等待其他 rank")
_STALL = Translated("waiting for 2 s or longer", "等待 2 秒以上")
_FAILED = Translated("failure", "故障")
_ENDED = Translated("ended in order", "正常结束")
_STOPPED = Translated("stopped from outside", "被外部停止")
_CLOCKS = Translated(
    "Each rank's times are by the clock of its own host; clocks of several hosts may differ.",
    "每个 rank 的时间取自其所在主机的时钟；多台主机的时钟可能不一致。",
)
_ALL = Translated("All {count} ranks", "全部 {count} 个 rank")
_MORE = Translated("{count} more ranks are not drawn.", "另有 {count} 个 rank 未画出。")
_COLUMNS = (
    Translated("Rank", "Rank"),
    Translated("Host", "主机"),
    Translated("Outcome", "结果"),
    Translated("Exit status", "退出状态"),
    Translated("Last recorded step", "最后记录的步"),
    Translated("Steps/s", "步/秒"),
    Translated("Last seen at", "最后位置"),
)
