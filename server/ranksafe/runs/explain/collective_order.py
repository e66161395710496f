"""The collectives that ranks called, compared: the first one at which they part."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranksafe.localization import Translated

RECORD = struct.Struct("<QQIIId")
"""As the agent writes it (``ranksafe_agent.detectors.collectives``): number of the call in its rank, its number in
its group, group, call, place, time."""
KIND = "collective-mismatch"
MAKING = "groups"
"""The name under which the agent counts the making of groups (``ranksafe_agent.detectors.transfers``)."""
GROUPS_KIND = "different-groups"
"""Ranks make groups of different members at the same time."""

Frames = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Group:
    """A process group, the same object on every member."""

    name: str
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a collective."""

    what: str
    place: Frames
    time: float = 0.0


@dataclass(slots=True)
class Calls:
    """What one rank called in one group: the latest calls by their number, and how many there were."""

    kept: dict[int, Call] = field(default_factory=dict)
    count: int = 0


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Two ranks that part: what each called as its ``number``-th; None: it did not call it."""

    group: str
    number: int
    one: tuple[int, Call]
    other: tuple[int, Call | None]

    @property
    def message(self) -> Translated:
        """Both calls with their lines."""
        rank, call = self.one
        peer, theirs = self.other
        values: dict[str, object] = {
            "number": self.number,
            "rank": rank,
            "call": call.what,
            "place": _place(call),
            "peer": peer,
        }
        if theirs is None:
            return _MISSING.filled(**values)
        return _DIFFERENT.filled(**values, other=theirs.what, there=_place(theirs))


def calls_of(path: Path, names: Sequence[Mapping[str, Any]]) -> dict[Group, Calls]:
    """The ring of one rank; ``names``: its ``collective-name`` events. Empty where there is none."""
    try:
        data = path.read_bytes()
    except OSError:
        return {}
    tables: dict[str, dict[int, Any]] = {"group": {}, "call": {}, "place": {}}
    for event in names:
        tables.setdefault(str(event.get("table")), {})[int(event["number"])] = event.get("value")
    found: dict[Group, Calls] = {}
    whole = len(data) // RECORD.size * RECORD.size
    for call, number, group, what, place, time in RECORD.iter_unpack(data[:whole]):
        described = tables["group"].get(group)
        if not call or described is None:
            continue
        key = Group(str(described["name"]), tuple(described["ranks"]))
        calls = found.setdefault(key, Calls())
        calls.count = max(calls.count, number)
        name = tables["call"].get(what)
        if name is not None:
            calls.kept[number] = Call(str(name), tables["place"].get(place) or (), time)
    return found


def groups_made(events: Sequence[Mapping[str, Any]]) -> dict[Group, Calls]:
    """One rank's calls of ``new_group`` (its ``group-made`` events), as if of one group without members."""
    calls = Calls()
    for event in events:
        number = int(event["number"])
        calls.kept[number] = Call(str(event.get("call")), event.get("frames") or ())
        calls.count = max(calls.count, number)
    return {Group(MAKING, ()): calls}


def first_mismatch(
    of_rank: Mapping[int, Mapping[Group, Calls]], missing_before: float | None
) -> Mismatch | None:
    """The first call at which two members of a group part.

    A call that a member lacks counts where it was made before the time ``missing_before``: later, the member may just
    have been on its way. None: it never counts, because a rank that died of something else called fewer.
    """
    groups = {group for calls in of_rank.values() for group in calls if len(group.ranks) > 1}
    for group in sorted(groups, key=lambda each: (-len(each.ranks), each.name)):
        members = {
            rank: of_rank[rank].get(group, Calls()) for rank in group.ranks if rank in of_rank
        }
        found = _first_of_group(group.name, members, missing_before)
        if found is not None:
            return found
    return None


def _first_of_group(
    group: str, members: Mapping[int, Calls], missing_before: float | None
) -> Mismatch | None:
    if len(members) < 2:
        return None
    kept = set().union(*(calls.kept for calls in members.values()))
    for number in sorted(kept):
        present = {
            rank: calls.kept[number] for rank, calls in members.items() if number in calls.kept
        }
        first, call = next(iter(present.items()))
        other = next((rank for rank in present if present[rank].what != call.what), None)
        if other is not None:
            return Mismatch(group, number, (first, call), (other, present[other]))
        ended = next((rank for rank in members if members[rank].count < number), None)
        if ended is not None and missing_before is not None and call.time < missing_before:
            return Mismatch(group, number, (first, call), (ended, None))
    return None


def _place(call: Call) -> str:
    if not call.place:
        return "?"
    innermost = call.place[-1]
    return f"{Path(str(innermost['file'])).name}:{innermost['line']}"


_DIFFERENT = Translated(
    en="collective {number}: rank {rank} calls {call} at {place}, rank {peer} calls {other} at {there}",
    zh_cn="第 {number} 次集合通信：rank {rank} 在 {place} 调用 {call}，rank {peer} 在 {there} 调用 {other}",
)
_MISSING = Translated(
    en="collective {number}: rank {rank} calls {call} at {place}, rank {peer} did not",
    zh_cn="第 {number} 次集合通信：rank {rank} 在 {place} 调用 {call}，rank {peer} 没有调用",
)
