"""What a change costs: a forecast beside one that was written down before it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranksafe.localization import Translated
from ranksafe.runs.fit import Forecast
from ranksafe.source.plain_files import read_plain

_LARGEST_FILE = 64 << 20


_NO_FORECAST = Translated(
    "{path}: no forecast as `ranksafe fit --output-format json` writes it",
    "{path}：不是 `ranksafe fit --output-format json` 写出的预测",
)
_NOT_READ = Translated("{path} cannot be read: {reason}", "无法读取 {path}：{reason}")


class NotComparable(Exception):
    """What was to be compared with is no forecast; the message says so."""

    def __init__(self, message: Translated) -> None:
        super().__init__(message.en)
        self.message = message


@dataclass(frozen=True, slots=True)
class Place:
    """A line that took memory, as it is found again when the lines around it have moved."""

    part: str
    frames: tuple[tuple[str, str, str], ...]
    """Outermost first: the file's name, the function, and the line's text; its number where the text is not known."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Of a forecast: the device that needs most, in bytes."""

    gpus: int
    device_model: str
    least: int
    likely: int | None
    """None where memory ran out and the script's end was not seen."""
    parts: Mapping[str, int]
    lines: Mapping[Place, int]
    """Of large blocks."""
    numbers: Mapping[Place, tuple[str, ...]]
    """Where each line is: ``train.py:88``, outermost first."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Of one part or line, in bytes."""

    before: int
    after: int

    @property
    def growth(self) -> int:
        """Below zero: less than before."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is different, the largest differences first; what is the same is left out."""

    before: Seen
    after: Seen
    total: Difference
    is_whole: bool
    """Whether `total` is of what is most likely; else of what is needed at least."""
    parts: Mapping[str, Difference]
    lines: Mapping[Place, Difference]


def read(path: Path) -> Seen:
    """What ``ranksafe fit --output-format json`` printed. Raises NotComparable."""
    try:
        told = json.loads(read_plain(path, _LARGEST_FILE))
        if not told["schema"].startswith("ranksafe-fit/"):
            raise ValueError(told["schema"])
        likely = told["needs"]["most_likely"]
        return _seen(
            int(told["gpus"]),
            str(told["device_model"]),
            int(told["needs"]["at_least"]),
            None if likely is None else int(likely),
            {str(name): int(size) for name, size in told["peak"]["parts"].items()},
            [_line(line) for line in told["peak"]["lines"]],
        )
    except OSError as error:
        raise NotComparable(_NOT_READ.filled(path=path, reason=error.strerror)) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise NotComparable(_NO_FORECAST.filled(path=path)) from error


def seen_of(forecast: Forecast, gpus: int, device_model: str) -> Seen:
    """The same of a forecast that was just made."""
    device = forecast.largest
    lines = [
        (
            line.part,
            line.size,
            [(frame.filename, frame.function, frame.source, frame.line) for frame in line.frames],
        )
        for line in device.peak.lines
    ]
    likely = device.need.likely if forecast.is_whole else None
    return _seen(gpus, device_model, device.need.least, likely, device.peak.parts, lines)


def compare(before: Seen, after: Seen) -> Comparison:
    """What the later one has more, or less."""
    is_whole = before.likely is not None and after.likely is not None
    total = Difference(before.least, after.least)
    if before.likely is not None and after.likely is not None:
        total = Difference(before.likely, after.likely)
    return Comparison(
        before,
        after,
        total,
        is_whole,
        _differences(before.parts, after.parts),
        _differences(before.lines, after.lines),
    )


_Frame = tuple[str, str, str, int]
"""File, function, text and number of a line."""


def _line(told: Any) -> tuple[str, int, list[_Frame]]:
    frames = [
        (
            str(frame["filename"]),
            str(frame["function"]),
            str(frame["source"]),
            int(frame["location"]["row"]),
        )
        for frame in told["frames"]
    ]
    return str(told["part"]), int(told["size"]), frames


def _seen(
    gpus: int,
    device_model: str,
    least: int,
    likely: int | None,
    parts: Mapping[str, int],
    lines: Iterable[tuple[str, int, Sequence[_Frame]]],
) -> Seen:
    sizes: dict[Place, int] = {}
    numbers: dict[Place, tuple[str, ...]] = {}
    for part, size, frames in lines:
        named = [(Path(file).name, function, text, row) for file, function, text, row in frames]
        place = Place(part, tuple((name, of, text or str(row)) for name, of, text, row in named))
        sizes[place] = sizes.get(place, 0) + size
        numbers.setdefault(place, tuple(f"{name}:{row}" for name, _, _, row in named))
    return Seen(gpus, device_model, least, likely, parts, sizes, numbers)


def _differences(before: Mapping[Any, int], after: Mapping[Any, int]) -> dict[Any, Difference]:
    pairs = {key: Difference(before.get(key, 0), after.get(key, 0)) for key in {**before, **after}}
    changed = [(key, pair) for key, pair in pairs.items() if pair.growth]
    return dict(sorted(changed, key=lambda item: -abs(item[1].growth)))
