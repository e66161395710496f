"""What each rank did when, from the journals in a run's folder; what a journal does not have is left out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ranksafe.runs.explain.collective_order import calls_of
from ranksafe.runs.plain_files import finite, parse_json
from ranksafe.runs.records import gpu_log, progress_log
from ranksafe.runs.records.progress_log import place_of
from ranksafe.source.plain_files import open_plain

MOST_JOURNAL_BYTES = 40 * 2**20
MOST_SPANS = 1500
"""Waits per rank; of more, the longest."""
SHORTEST_STALL_SECONDS = 2.0
"""A rank that waits in a collective for less is not said to stall."""
_WARM_UP_STEPS = 2
_BEAT_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class Span:
    """A rank waits in a collective or a transfer, as its heartbeats saw it."""

    kind: str
    """``collective``, or ``stall`` for one that took long."""
    start: float
    end: float
    label: str
    place: str = ""
    """``train.py:41``."""
    is_open: bool = False
    """It was never left."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment of a rank's life."""

    kind: str
    """``exception``, ``silent-failure``, ``exit``, ``stopped``, ``collective`` (one was entered)."""
    time: float
    label: str


@dataclass(slots=True)
class Lane:
    """One rank. Times are seconds since the epoch, by the rank's own host's clock."""

    rank: int
    host: str = ""
    started: float | None = None
    ended: float | None = None
    """The last moment it is known to have lived."""
    steps: list[tuple[float, int]] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    spoke_at_end: bool = False
    """It ended by itself: in order, by an exception, by a call."""
    last_seen_at: str = ""
    """Where its main thread stood at its last sign of life (``train.py:41 in step``)."""

    @property
    def last_step(self) -> int | None:
        """The highest optimizer step that was recorded."""
        return self.steps[-1][1] if self.steps else None

    @property
    def steps_per_second(self) -> float | None:
        """Over the recorded steps without the first ones, which load and compile; None for too few."""
        steps = self.steps[_WARM_UP_STEPS:] if len(self.steps) > _WARM_UP_STEPS + 1 else self.steps
        if len(steps) < 2:
            return None
        (start, first), (end, last) = steps[0], steps[-1]
        return (last - first) / (end - start) if end > start and last > first else None


@dataclass(frozen=True, slots=True)
class GpuSample:
    """A device at a moment; None where it does not say."""

    time: float
    device: str
    """Index and, with several hosts, the host."""
    used_mib: float | None
    total_mib: float | None
    busy_percent: float | None


@dataclass(slots=True)
class Timeline:
    """All ranks of a run."""

    lanes: list[Lane]
    samples: list[GpuSample] = field(default_factory=list)

    @property
    def start(self) -> float:
        """The first moment of any rank; 0 without one."""
        return min((time for lane in self.lanes for time in _times(lane)), default=0.0)

    @property
    def end(self) -> float:
        """The last moment of any rank."""
        return max((time for lane in self.lanes for time in _times(lane)), default=0.0)

    @property
    def steps_per_second(self) -> float | None:
        """Of the slowest rank: the ranks wait for it."""
        rates = [rate for lane in self.lanes if (rate := lane.steps_per_second) is not None]
        return min(rates, default=None)


def load_timeline(directory: Path) -> Timeline:
    """Read a run's folder; what is missing, damaged or beyond `MOST_JOURNAL_BYTES` is left out."""
    lanes: dict[int, Lane] = {}
    for path in directory.glob("rank*.jsonl"):
        number = path.stem.removeprefix("rank")
        if number.isdigit():
            lanes[int(number)] = _lane(int(number), path)
    for entry in _entries(directory / progress_log.FILE):
        rank = entry.get("rank")
        if isinstance(rank, int) and rank in lanes:
            _read_progress(lanes[rank], entry)
    for lane in lanes.values():
        lane.steps = _in_order(lane.steps)
        if len(lane.spans) > MOST_SPANS:
            lane.spans = sorted(lane.spans, key=lambda span: span.start - span.end)[:MOST_SPANS]
        lane.spans = [_judged(span, lane) for span in lane.spans]
    samples = list(_samples(directory / gpu_log.FILE))
    return Timeline([lanes[rank] for rank in sorted(lanes)], samples)


def _lane(rank: int, path: Path) -> Lane:
    lane = Lane(rank)
    names = []
    for event in _entries(path):
        time = event.get("time")
        if not isinstance(time, (int, float)):
            continue
        lane.ended = max(lane.ended or time, float(time))
        if event.get("event") == "collective-name" and isinstance(event.get("number"), int):
            names.append(event)
        else:
            _read_event(lane, event, float(time))
    with contextlib.suppress(KeyError, TypeError, ValueError):  # damaged names
        for calls in calls_of(path.with_suffix(".collectives"), names).values():
            lane.marks += [
                Mark("collective", call.time, f"{call.what} {place_of(call.place)}")
                for call in calls.kept.values()
            ]
    beat: Mapping[str, Any] = next(_entries(path.with_suffix(".beat")), {})
    if isinstance(beat.get("time"), (int, float)):
        lane.ended = max(lane.ended or 0.0, float(beat["time"]))
    lane.last_seen_at = place_of(beat.get("frames"), function=True)
    return lane


def _read_event(lane: Lane, event: Mapping[str, Any], time: float) -> None:
    kind = event.get("event")
    lane.spoke_at_end |= kind in ("exit", "os-exit", "exception")
    if kind == "start":
        lane.started, lane.host = time, str(event.get("host", ""))
    elif kind == "step" and isinstance(event.get("step"), int):
        lane.steps.append((time, event["step"]))
    elif kind == "exception":
        raised = event.get("exception")
        name = str(raised.get("type", "")) if isinstance(raised, dict) else ""
        lane.marks.append(Mark("exception", time, name))
    elif kind == "silent-failure":
        lane.marks.append(Mark("silent-failure", time, str(event.get("kind", ""))))
    elif kind == "os-exit":
        lane.marks.append(Mark("exit", time, f"os._exit({event.get('status')})"))
    elif kind == "stopped":
        lane.marks.append(Mark("stopped", time, ""))


def _read_progress(lane: Lane, entry: Mapping[str, Any]) -> None:
    """An entry of the progress log: a step reached, a wait that began or goes on."""
    time, steps, since = entry.get("time"), entry.get("steps"), entry.get("since")
    if not isinstance(time, (int, float)):
        return
    if isinstance(steps, int) and steps > 0:
        lane.steps.append((float(time), steps))
    if not isinstance(since, (int, float)) or not entry.get("call"):
        return
    span = Span("", float(since), float(time), str(entry["call"]), str(entry.get("place") or ""))
    if lane.spans and (lane.spans[-1].start, lane.spans[-1].label) == (span.start, span.label):
        lane.spans[-1] = span
    else:
        lane.spans.append(span)


def _judged(span: Span, lane: Lane) -> Span:
    """A wait that was seen in the last moments of a rank that was ended in it was never left."""
    ended = lane.ended or span.end
    is_open = not lane.spoke_at_end and span.end >= ended - _BEAT_SECONDS
    end = max(span.end, ended) if is_open else span.end
    kind = "stall" if end - span.start >= SHORTEST_STALL_SECONDS else "collective"
    return replace(span, kind=kind, end=end, is_open=is_open)


def _in_order(steps: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """By time, each step where it was seen first."""
    found: list[tuple[float, int]] = []
    for time, step in sorted(steps):
        if not found or step > found[-1][1]:
            found.append((time, step))
    return found


def _samples(path: Path) -> Iterator[GpuSample]:
    for entry in _entries(path):
        time, devices = _number(entry.get("time")), entry.get("devices")
        if time is None or not isinstance(devices, list):
            continue
        host = str(entry.get("host", ""))
        for device in devices:
            if isinstance(device, dict):
                name = f"{host}:{device.get('index')}" if host else str(device.get("index"))
                numbers = (
                    _number(device.get(key)) for key in ("used_mib", "total_mib", "busy_percent")
                )
                yield GpuSample(time, name, *numbers)


def _entries(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        with open_plain(path) as file:
            text = file.read(MOST_JOURNAL_BYTES).decode("utf-8", "replace")
    except OSError:
        return
    for line in text.splitlines():
        try:
            value = parse_json(line)
        except ValueError:
            continue
        if isinstance(value, dict) and all(
            finite(value[key]) is not None for key in ("time", "since") if value.get(key)
        ):
            yield value


def _times(lane: Lane) -> Iterator[float]:
    if lane.started is not None:
        yield lane.started
    if lane.ended is not None:
        yield lane.ended
    yield from (time for time, _ in lane.steps[:1])


def _number(value: Any) -> float | None:
    return finite(value)
