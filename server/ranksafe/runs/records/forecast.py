"""A forecast's answer, kept in the folder of its run for the run's report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranksafe.localization import Translated
from ranksafe.runs import fit_words
from ranksafe.runs.fit import Forecast
from ranksafe.runs.model import MemoryTimeline, RunRequest, RunResult
from ranksafe.runs.plain_files import finite, read_json
from ranksafe.runs.records.kept_runs import translated
from ranksafe.runs.records.recorder import in_both

FILE = "forecast.json"
_LARGEST = 4 * 2**20
_MOST = 2000


@dataclass(frozen=True, slots=True)
class KeptForecast:
    """What a report shows of it."""

    fits: str
    """A value of `ranksafe.runs.fit.Fits`."""
    title: Translated
    headline: Translated
    details: list[Translated]
    capacity: float
    """Of each device, in bytes."""
    gpu: int
    """The one that needs most, which the timeline is of."""
    timeline: MemoryTimeline | None


def keep_forecast(forecast: Forecast, request: RunRequest, number: int, result: RunResult) -> None:
    """Write the answer into the folder of the run that was made first, if that has one; ``number``: of all devices."""
    if result.log is None:
        return
    timeline = forecast.largest.peak.timeline
    kept = {
        "fits": forecast.fits.value,
        "title": in_both(fit_words.title(forecast, request, number)),
        "headline": in_both(fit_words.headline(forecast, request, number)),
        "details": [in_both(sentence) for sentence in fit_words.details(forecast)],
        "capacity": forecast.capacity,
        "gpu": forecast.largest.number,
        "timeline": timeline
        and {"moments": timeline.moments, "parts": timeline.parts, "steps": timeline.steps},
    }
    # Without it the report lacks a section; the answer has been given.
    with suppress(OSError):
        text = json.dumps(kept, ensure_ascii=False)
        (result.log.parent / FILE).write_text(text, encoding="utf-8", errors="backslashreplace")


def load_forecast(directory: Path) -> KeptForecast | None:
    """What is kept in a run's folder; None where nothing is, or nothing that can be read."""
    try:
        data = read_json(directory / FILE, _LARGEST)
    except (OSError, ValueError):
        return None
    if not isinstance(data, Mapping):
        return None
    return KeptForecast(
        fits=str(data.get("fits")),
        title=translated(data.get("title")),
        headline=translated(data.get("headline")),
        details=[translated(each) for each in _items(data.get("details"))],
        capacity=finite(data.get("capacity")) or 0.0,
        gpu=int(finite(data.get("gpu")) or 0),
        timeline=_timeline(data.get("timeline")),
    )


def _timeline(data: Any) -> MemoryTimeline | None:
    if not isinstance(data, Mapping):
        return None
    parts = data.get("parts")
    moments = _numbers(data.get("moments"))
    sizes = (
        {str(name): _numbers(each) for name, each in parts.items()}
        if isinstance(parts, Mapping)
        else {}
    )
    told = {name: each for name, each in sizes.items() if len(each) == len(moments)}
    steps = [_numbers(each) for each in _items(data.get("steps"))]
    pairs = tuple((each[0], each[1]) for each in steps if len(each) == 2)
    return MemoryTimeline(moments, told, pairs) if moments and told else None


def _numbers(data: Any) -> tuple[int, ...]:
    return tuple(int(finite(each) or 0) for each in _items(data))


def _items(data: Any) -> Sequence[Any]:
    return data[:_MOST] if isinstance(data, list) else ()
