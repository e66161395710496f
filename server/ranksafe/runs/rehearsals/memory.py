"""What a forecast's processes said of the memory of their devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranksafe.runs.explain.evidence import Evidence, frames_from
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.model import MemoryBlocks, MemoryLine, MemoryPeak, MemoryTimeline
from ranksafe.runs.rehearsals.verdict import Rehearsal

_OF_A_PEAK = (
    *("allocated", "reserved", "refused", "retries", "phase", "step", "steps", "groups"),
    *("convolves", "compiled", "parts"),
)
"""What an event and a `MemoryPeak` have under the same names."""


def memory_peaks(
    rehearsal: Rehearsal, evidence: Evidence, user_code: UserCode
) -> tuple[MemoryPeak, ...]:
    """What every rank held of its devices at most; empty where the run was no forecast."""
    ranks = {rank.pid: rank.rank for rank in evidence.ranks.values() if rank.pid is not None}
    peaks = [
        MemoryPeak(
            rank=ranks.get(pid, event.get("rank") or 0),
            device=device,
            frames=user_code.marked(frames_from(event["frames"])),
            phases={name: (pair[0], pair[1]) for name, pair in event["phases"].items()},
            **{name: event[name] for name in _OF_A_PEAK},
            lines=tuple(
                MemoryLine(
                    part=line["part"],
                    size=line["size"],
                    blocks=line["blocks"],
                    frames=user_code.marked(frames_from(line["frames"])),
                )
                for line in event["lines"]
            ),
            blocks=tuple(
                MemoryBlocks(part, size, count, frames_from(event["places"].get(str(place))))
                for part, size, place, count in event["blocks"]
            ),
            timeline=_timeline(rehearsal.timelines.get((pid, device))),
        )
        for (pid, device), event in rehearsal.memory.items()
    ]
    return tuple(sorted(peaks, key=lambda peak: (peak.rank, peak.device)))


def _timeline(event: Mapping[str, Any] | None) -> MemoryTimeline | None:
    if event is None:
        return None
    return MemoryTimeline(
        moments=tuple(event["moments"]),
        parts={part: tuple(sizes) for part, sizes in event["parts"].items()},
        steps=tuple((moment, step) for moment, step in event["steps"]),
    )
