"""Where the last lines of two ranks part, after the last collective that both called (``ranksafe_agent.trail``)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ranksafe.runs.compared_ranks.parted import Parting, Way, decided_by, in_loops
from ranksafe.runs.explain.collective_order import calls_of
from ranksafe.runs.explain.evidence import entries_of
from ranksafe.source.plain_files import open_plain

RECORD = struct.Struct("<III")
"""As the agent writes it: file, line, 0; or `CALL`, group, number of the call in it."""
CALL = 0xFFFFFFFF
HEAD = struct.Struct("<Q")
_LARGEST = 4_000_000
Line = tuple[str, int]


Call = tuple[str, int, str]
"""Group, number of the call in it, what was called."""


@dataclass(frozen=True, slots=True)
class Trail:
    """The lines that led to each of the last collectives, and those since, which led to None."""

    parts: tuple[tuple[Call | None, tuple[Line, ...]], ...]
    from_the_beginning: bool = True


def trails_of(directory: Path) -> dict[int, Trail]:
    """By rank; those that cannot be read are left out."""
    found = {}
    for path in directory.glob("rank*.trail"):
        rank = path.stem.removeprefix("rank")
        try:
            with open_plain(path) as file:
                data = file.read(_LARGEST)
            if rank.isdigit():
                found[int(rank)] = _trail(data, path)
        except (OSError, KeyError, TypeError, ValueError, struct.error):
            continue
    return found


def _trail(data: bytes, path: Path) -> Trail:
    journal = entries_of(path.with_suffix(".jsonl"))
    events = [event for event in journal if event.get("number")]
    files = {e["number"]: str(e["file"]) for e in events if e.get("event") == "trail-file"}
    names = [event for event in events if event.get("event") == "collective-name"]
    groups = {e["number"]: str(e["value"]["name"]) for e in names if e["table"] == "group"}
    made = {
        (group.name, number): call.what
        for group, calls in calls_of(path.with_suffix(".collectives"), names).items()
        for number, call in calls.kept.items()
    }
    (written,) = HEAD.unpack_from(data)
    slots = (len(data) - HEAD.size) // RECORD.size
    parts: list[tuple[Call | None, tuple[Line, ...]]] = []
    lines: list[Line] = []
    for index in range(max(0, written - slots), written):
        kind, first, second = RECORD.unpack_from(data, HEAD.size + index % slots * RECORD.size)
        if kind != CALL:
            lines.append((files[kind], first))
        else:
            name = groups[first]
            parts.append(((name, second, made.get((name, second), "")), tuple(lines)))
            lines = []
    return Trail((*parts, (None, tuple(lines))), written <= slots)


def parting_of_trails(
    waiting: Way, other: Way, trails: Mapping[int, Trail], at: tuple[str, int] | None = None
) -> Parting | None:
    """What the two did differently after the last collective that they called alike, in a function that the waiting
    rank is still in.

    ``at``: group and number of the first call in which they differ, where it is known.
    """
    one, two = trails.get(waiting.rank), trails.get(other.rank)
    if one is None or two is None:
        return None
    lines = _since_the_last_common(one, two, at)
    if lines is None:
        return None
    ways = _within(waiting, lines[0]), _within(other, lines[1])
    found = decided_by(*ways)
    loop = found or in_loops(*ways)
    if loop is None or not loop.is_loop:
        return found
    # They made different numbers of passes: one may have skipped a call before, and been matched with another since.
    earlier = (
        decided_by(_within(waiting, ours), _within(other, theirs))
        for ours, theirs in _common(one, two, at)
    )
    return next((each for each in earlier if each is not None and each.is_exit), loop)


def _within(way: Way, lines: Iterable[Line]) -> Way:
    """A rank as if it had executed only these lines, and those that it is at."""
    executed: dict[Path, set[int]] = {}
    here = ((str(Path(frame.filename).resolve()), frame.line) for frame in way.frames)
    for file, line in (*lines, *here):
        executed.setdefault(Path(file), set()).add(line)
    return replace(way, executed={file: frozenset(own) for file, own in executed.items()})


def _common(
    one: Trail, other: Trail, at: tuple[str, int] | None
) -> Iterator[tuple[tuple[Line, ...], tuple[Line, ...]]]:
    """What led both to each call that they made alike, the earliest first."""
    theirs = dict(other.parts)
    for call, lines in one.parts[:-1]:
        if call in theirs and (at is None or call is None or call[:2] != at):
            yield lines, theirs[call]


def are_together(one: Trail | None, other: Trail | None) -> bool:
    """Whether two ranks were last seen to call the same collective."""
    if one is None or other is None or min(len(one.parts), len(other.parts)) < 2:
        return False
    return one.parts[-2][0] == other.parts[-2][0]


def _since_the_last_common(
    one: Trail, other: Trail, at: tuple[str, int] | None
) -> tuple[tuple[Line, ...], tuple[Line, ...]] | None:
    """What both executed after it, the last before the call ``at``; from the beginning where there was none."""
    calls = [call for call, _ in one.parts[:-1] if call is not None]
    before = next((number for number, call in enumerate(calls) if call[:2] == at), len(calls))
    numbers = {call: number for number, (call, _) in enumerate(other.parts[:-1])}
    for number in reversed(range(before)):
        if calls[number] in numbers:
            return one.parts[number + 1][1], other.parts[numbers[calls[number]] + 1][1]
    if one.from_the_beginning and other.from_the_beginning:
        return one.parts[0][1], other.parts[0][1]
    return None
