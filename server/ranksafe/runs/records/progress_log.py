"""What the ranks' heartbeats said over time: steps made, collectives waited in. A heartbeat itself holds the last beat
only."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

FILE = "progress.jsonl"
MOST_BYTES = 32 * 2**20
PERIOD_SECONDS = 1.0
_SAME_WAIT_SECONDS = 5.0
"""How often a wait that goes on is written down again."""
_LARGEST_BEAT = 2**20
_NOT_OWN = frozenset({"site-packages", "dist-packages", "ranksafe_agent", "ranksafe_rehearsal"})


class ProgressLog:
    """Follows the beats in a run's folder; `look` may be called as often as wanted."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._looked = 0.0
        self._size = 0
        self._stamps: dict[str, int] = {}
        self._written: dict[int, Mapping[str, Any]] = {}
        self._pending: dict[int, Mapping[str, Any]] = {}

    def look(self, *, final: bool = False) -> None:
        """Write down what is new. Never raises for a file: a full disk ends this log, not the run."""
        now = time.monotonic()
        if not final and now - self._looked < PERIOD_SECONDS:
            return
        self._looked = now
        try:
            entries = [entry for entry in map(self._read, self._beats()) if entry is not None]
            lines = [line for entry in entries for line in self._worth_writing(entry)]
            if final:
                lines += [line for line in self._pending.values() if line not in lines]
            self._append(lines)
        except OSError:
            self._size = MOST_BYTES

    def _beats(self) -> list[Path]:
        """The beats that changed since the last look."""
        changed = []
        for path in self._directory.glob("rank*.beat"):
            stamp = path.stat().st_mtime_ns
            if self._stamps.get(path.name) != stamp:
                self._stamps[path.name] = stamp
                changed.append(path)
        return changed

    def _read(self, path: Path) -> Mapping[str, Any] | None:
        number = path.stem.removeprefix("rank")
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                beat = json.loads(file.read(_LARGEST_BEAT))
        except ValueError:
            return None
        if not isinstance(beat, dict) or not number.isdigit():
            return None
        if not isinstance(beat.get("time"), (int, float)):
            return None
        collectives = beat.get("collectives")
        inside = collectives.get("now") if isinstance(collectives, dict) else None
        wait = inside[0] if isinstance(inside, list) and inside else {}
        wait = wait if isinstance(wait, dict) else {}
        return {
            "rank": int(number),
            "time": beat.get("time"),
            "steps": beat.get("steps"),
            "call": wait.get("call"),
            "since": wait.get("since"),
            "place": place_of(wait.get("frames") or beat.get("frames")) if wait else None,
        }

    def _worth_writing(self, entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """An entry that tells something new, after the last one of what it ends."""
        rank = entry["rank"]
        before, held = self._written.get(rank), self._pending.pop(rank, None)
        if before is not None and _same(before, entry):
            if entry["time"] - before["time"] < _SAME_WAIT_SECONDS or entry["call"] is None:
                self._pending[rank] = entry
                return []
        self._written[rank] = entry
        return [held, entry] if held is not None and held["call"] is not None else [entry]

    def _append(self, entries: list[Mapping[str, Any]]) -> None:
        if not entries or self._size >= MOST_BYTES:
            return
        text = "".join(json.dumps(entry) + "\n" for entry in entries)
        with (self._directory / FILE).open("a", encoding="utf-8") as file:
            file.write(text)
        self._size += len(text)


def place_of(frames: Any, *, function: bool = False) -> str:
    """``train.py:41`` (``train.py:41 in step``): the innermost frame that is no library's, else the innermost."""
    found = (
        [frame for frame in frames if isinstance(frame, dict)] if isinstance(frames, list) else []
    )
    if not found:
        return ""
    own = [frame for frame in found if not _is_library(str(frame.get("file", "")))]
    frame = (own or found)[-1]
    place = f"{Path(str(frame.get('file', ''))).name}:{frame.get('line')}"
    return f"{place} in {frame.get('function')}" if function else place


def _is_library(filename: str) -> bool:
    parts = Path(filename).parts
    if filename.startswith("<") or not _NOT_OWN.isdisjoint(parts):
        return True
    return any(one == "lib" and two.startswith("python3") for one, two in pairwise(parts))


def _same(before: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    return all(before[key] == entry[key] for key in ("steps", "call", "since"))
