"""Branches that each rank decides for itself, judged within one rank's trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ranksafe.rank_flow.comparison.loops import ends_together
from ranksafe.rank_flow.traces import (
    Branch,
    Call,
    Event,
    Exit,
    Item,
    Loop,
    Opaque,
    Place,
    events_in,
    performs,
)
from ranksafe.rank_flow.values import Abstract, Value, Varies


@dataclass(slots=True)
class LocalDecision:
    """A branch on a value that differs between ranks, and what follows from it."""

    kind: str
    """``exit``: some ranks leave a loop or skip its rest; ``collective``: some perform a collective more; ``count``: a
    loop runs a different number of times."""
    place: Place
    condition: Value
    event: Event
    exit: Exit | None = None
    complete_on: int | None = None


def local_decisions(items: list[Item]) -> Iterator[LocalDecision]:
    """Every branch and loop of one rank's trace whose condition differs between ranks and that others would notice."""
    yield from _local(items, [], [])


def _local(
    items: list[Item], loops: list[tuple[Loop, list[Item]]], after: list[list[Item]]
) -> Iterator[LocalDecision]:
    for index, item in enumerate(items):
        rest = items[index + 1 :]
        if isinstance(item, Branch):
            if item.condition.varies is Varies.BY_DATA:
                yield from _judged(item, rest, loops, after)
            elif item.condition.varies is Varies.BY_RANK:
                yield from _membership(item)
            yield from _local(item.then, loops, [*after, rest])
            yield from _local(item.otherwise, loops, [*after, rest])
        elif isinstance(item, Loop):
            varies = isinstance(item.count, Varies) and item.count.certain
            event = next(events_in(item.body, certain=True), None)
            uneven = varies and not item.joined and not ends_together(item)
            if uneven and event is not None and _of_everybody(event):
                yield LocalDecision(
                    "count", item.place, item.source or Abstract(Varies.BY_DATA), event
                )
            yield from _local(item.body, [*loops, (item, rest)], [])
        elif isinstance(item, Call):
            # A return in there ends the call, not the loops around it.
            yield from _local(item.body, [], [])


def _judged(
    branch: Branch, rest: list[Item], loops: list[tuple[Loop, list[Item]]], after: list[list[Item]]
) -> Iterator[LocalDecision]:
    complete_on = branch.condition.complete_on if isinstance(branch.condition, Abstract) else None
    arms = [branch.then, branch.otherwise]
    exits = [_first_exit(arm) for arm in arms]
    if any(item is not None and item.kind == "raise" for item in exits):
        return
    leaving = [index for index, item in enumerate(exits) if item is not None]
    if len(leaving) == 1:
        item = exits[leaving[0]]
        assert item is not None
        mine = arms[leaving[0]]
        event = _missed(item, [arms[1 - leaving[0]], rest, *reversed(after)], loops)
        if event is None:
            event = next(_for_all(mine), None)
            if event is None or _has_undecided([*rest, *arms[1 - leaving[0]]]):
                return
        elif performs(mine, event.operation.word):
            return
        kind = "exit" if loops or item.kind == "exit" else "collective"
        yield LocalDecision(kind, branch.place, branch.condition, event, item, complete_on)
        return
    if leaving:
        return
    sequences = [[event.operation.word for event in _for_all(arm)] for arm in arms]
    if sequences[0] == sequences[1] or any(map(_has_undecided, arms)):
        return
    longer = arms[0] if len(sequences[0]) >= len(sequences[1]) else arms[1]
    event = next(_for_all(longer), None)
    if event is not None:
        yield LocalDecision("collective", branch.place, branch.condition, event, None, complete_on)


def _membership(branch: Branch) -> Iterator[LocalDecision]:
    """``if rank in ranks: new_group(ranks)``: the ranks outside do not make the group."""
    if not (isinstance(branch.condition, Abstract) and branch.condition.decides):
        return
    made = [
        [
            event
            for event in events_in(arm, certain=True)
            if event.operation.kind == "group-construction" and event.group is None
        ]
        for arm in (branch.then, branch.otherwise)
    ]
    if bool(made[0]) is not bool(made[1]):
        event = (made[0] or made[1])[0]
        yield LocalDecision("collective", branch.place, branch.condition, event)


def _missed(
    item: Exit, later: list[list[Item]], loops: list[tuple[Loop, list[Item]]]
) -> Event | None:
    """The collective that the ranks which go on perform, and those which leave do not."""
    if item.kind in ("break", "continue"):
        if not loops:
            return None
        loop = loops[-1][0]
        if loop.joined:
            return None
        if item.kind == "continue":
            return next((event for part in later for event in _for_all(part)), None)
        return next(_for_all(loop.body), None)
    for loop, _ in reversed(loops):
        if not loop.joined and (event := next(_for_all(loop.body), None)) is not None:
            return event
    later = [*later, *(rest for _, rest in reversed(loops))]
    return next((event for part in later for event in _for_all(part)), None)


def _for_all(items: list[Item]) -> Iterator[Event]:
    return (event for event in events_in(items, certain=True) if _of_everybody(event))


def _of_everybody(event: Event) -> bool:
    return event.operation.kind != "point-to-point" and event.group_known


def _has_undecided(items: list[Item]) -> bool:
    return any(isinstance(item, (Branch, Opaque)) for item in items)


def _first_exit(items: list[Item]) -> Exit | None:
    for item in items:
        if isinstance(item, Exit):
            return item
        if isinstance(item, Branch):
            both = [_first_exit(item.then), _first_exit(item.otherwise)]
            if all(both) and both[0] is not None:
                return both[0]
    return None
