"""What a rank's heartbeat tells, once a second (``ranksafe_agent.heartbeat``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranksafe.runs.explain.evidence import frames_from, parse_entry
from ranksafe.runs.model import Frame


@dataclass(frozen=True, slots=True)
class Wait:
    """A collective or a transfer that a rank is in."""

    call: str
    """As written down by the rank: ``all_reduce float32[4]``, ``recv``, ``backward``."""
    since: float
    """Seconds since the epoch, by the rank's clock."""
    group: str | None = None
    ranks: tuple[int, ...] = ()
    """The group's members."""
    number: int | None = None
    """Which call of the group this is for the rank, from 1."""
    peers: tuple[int, ...] | None = None
    """The other side of a transfer; empty: anybody."""
    frames: tuple[Frame, ...] = ()
    """Of the waiting thread, where it is not the main one."""

    @property
    def name(self) -> str:
        """The function's name alone."""
        return self.call.split(" ", maxsplit=1)[0]


@dataclass(frozen=True, slots=True)
class Others:
    """What lives beside a main thread that rests. Threads and children: id, processor time, times scheduled."""

    disk: bool
    """Whether the main thread waits for a disk."""
    threads: Mapping[int, tuple[int, int]]
    """Processor time in nanoseconds."""
    children: Mapping[int, tuple[int, int]] | None
    """Processor time in ticks; None: the system does not tell."""
    children_on_disk: bool = False


@dataclass(frozen=True, slots=True)
class Beat:
    """One heartbeat. Times are in seconds since the epoch, by the rank's clock."""

    time: float
    frames: tuple[Frame, ...]
    """The main thread's stack, outermost first."""
    group_size: int | None = None
    steps: int = 0
    entered: int = 0
    left: int = 0
    waits: tuple[Wait, ...] = ()
    """Of the main thread first."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Collectives entered, by the group's name."""
    main: tuple[int, int] | None = None
    """The main thread's nanoseconds of processor time and times scheduled; None: the system does not tell."""
    cpu: float = 0.0
    """Seconds of processor time of all threads but the heartbeat's."""
    others: Others | None = None
    """None while the main thread runs."""
    cuda: bool = False


def read_beat(path: Path) -> Beat | None:
    """The beat in a file; None where there is none, or none that can be read."""
    try:
        return beat_from(parse_entry(path.read_text(encoding="utf-8", errors="replace")))
    except (OSError, KeyError, TypeError, ValueError, IndexError):
        return None


def beat_from(data: Mapping[str, Any]) -> Beat:
    """The beat as the agent wrote it. Raises KeyError, TypeError or ValueError for anything else."""
    collectives, signs = data.get("collectives") or {}, data.get("signs") or {}
    main = signs.get("main")
    return Beat(
        time=float(data["time"]),
        frames=frames_from(data["frames"]),
        group_size=data.get("group"),
        steps=int(data.get("steps", 0)),
        entered=int(collectives.get("entered", 0)),
        left=int(collectives.get("left", 0)),
        waits=waits_from(collectives),
        counts={
            str(name): int(told[0]) for name, told in (collectives.get("counts") or {}).items()
        },
        main=None if main is None else (int(main[0]), int(main[1])),
        cpu=float(signs.get("cpu", 0.0)),
        others=_others(signs.get("others")),
        cuda=bool(data.get("cuda")),
    )


def waits_from(collectives: Mapping[str, Any]) -> tuple[Wait, ...]:
    """What a rank's threads wait for, as the agent wrote it."""
    return tuple(
        Wait(
            call=str(each["call"]),
            since=float(each["since"]),
            group=each.get("group"),
            ranks=tuple(int(rank) for rank in each.get("ranks") or ()),
            number=each.get("number"),
            peers=None if each.get("peers") is None else tuple(map(int, each["peers"])),
            frames=frames_from(each.get("frames")),
        )
        for each in collectives.get("now") or ()
    )


def _others(data: Mapping[str, Any] | None) -> Others | None:
    if data is None:
        return None
    children = data.get("children")
    return Others(
        disk=bool(data.get("disk")),
        threads={int(each[0]): (int(each[1]), int(each[2])) for each in data.get("threads") or ()},
        children=None
        if children is None
        else {int(each[0]): (int(each[1]), int(each[2])) for each in children},
        children_on_disk=any(each[3] for each in children or ()),
    )
