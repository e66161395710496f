"""Reads the notation of splits, ``train[:10%]+test[5:9]``, as far as the number of rows depends on it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PART = re.compile(
    r"^\s*([\w.]+)\s*(?:\[\s*(-?\d+)?\s*(%)?\s*:\s*(-?\d+)?\s*(%)?\s*\])?\s*(?:\([\w_]+\))?\s*$"
)
_USUAL_ROWS = 10_000
"""Length of a split that percentages refer to: the real length is not known."""


@dataclass(frozen=True)
class Part:
    """One name with the bounds of its slice."""

    name: str
    start: int = 0
    stop: int | None = None
    percent: bool = False

    def rows(self, most: int) -> int:
        """How many rows to make, between 1 and ``most``."""
        whole = 100 if self.percent else _USUAL_ROWS
        start = self.start + whole if self.start < 0 else self.start
        stop = whole if self.stop is None else self.stop + whole if self.stop < 0 else self.stop
        count = max(0, stop - start)
        return max(1, min(most, count * _USUAL_ROWS // 100 if self.percent else count))


def parsed(split: str) -> list[Part]:
    """The parts of a split. Raises ValueError, in datasets' words, for one that cannot be read."""
    parts = []
    for piece in split.split("+"):
        match = _PART.match(piece)
        if match is None:
            raise ValueError(f"Unrecognized instruction format: {piece}")
        name, start, percent, stop, percent_too = match.groups()
        parts.append(
            Part(
                name,
                int(start or 0),
                None if stop is None else int(stop),
                bool(percent or percent_too),
            )
        )
    return parts
