"""Sends and receives of all ranks, matched."""

from __future__ import annotations

from collections.abc import Iterator

from ranksafe.semantics.rank_flow.traces import Branch, Call, Event, Item, Loop, Opaque, events_in
from ranksafe.semantics.rank_flow.values import Known, Sameness

_BLOCKING = frozenset({"send", "recv"})
_LONGEST = 64
_SENDS = frozenset({"send", "isend", "send_object_list"})


def unmatched(traces: list[list[Item]]) -> Iterator[Event]:
    """Point-to-point operations without a partner, where everything about them is known."""
    sequences: list[list[Event]] = []
    for trace in traces:
        if _uncertain(trace):
            return
        sequences.append(list(_repeated(trace)))
    words = {event.operation.word in _SENDS for events in sequences for event in events}
    if len(words) < 2:
        return
    partnerless = _partnerless(sequences)
    receives = [event for event in partnerless if event.operation.word not in _SENDS]
    yield from receives or partnerless
    if not partnerless and all(
        event.operation.word in _BLOCKING for events in sequences for event in events
    ):
        yield from _stuck(sequences)


def _partnerless(sequences: list[list[Event]]) -> list[Event]:
    """Operations in excess of those of the other rank."""
    counts: dict[tuple[int, int, bool], list[Event]] = {}
    for rank, events in enumerate(sequences):
        for event in events:
            if not isinstance(event.peer, Known) or not isinstance(event.peer.constant, int):
                return []
            sends = event.operation.word in _SENDS
            pair = (rank, event.peer.constant) if sends else (event.peer.constant, rank)
            counts.setdefault((*pair, sends), []).append(event)
    found = []
    for (source, target, sends), events in counts.items():
        partners = counts.get((source, target, not sends), [])
        if len(events) > len(partners) and _exists(source, target, len(sequences)):
            found.append(events[len(partners)])
    return found


def _stuck(sequences: list[list[Event]]) -> Iterator[Event]:
    """The operation at which ranks wait for each other, when each send waits for its receive."""
    at = [0] * len(sequences)
    if any(not 0 <= _peer(event) < len(sequences) for events in sequences for event in events):
        return
    while True:
        moved = False
        for rank, events in enumerate(sequences):
            if at[rank] >= len(events) or events[at[rank]].operation.word not in _SENDS:
                continue
            peer = _peer(events[at[rank]])
            if not 0 <= peer < len(sequences) or at[peer] >= len(sequences[peer]):
                continue
            partner = sequences[peer][at[peer]]
            if partner.operation.word not in _SENDS and _peer(partner) == rank:
                at[rank] += 1
                at[peer] += 1
                moved = True
        if not moved:
            break
    for rank, events in enumerate(sequences):
        if at[rank] < len(events):
            yield events[at[rank]]
            return


def _peer(event: Event) -> int:
    assert isinstance(event.peer, Known)
    return int(event.peer.constant)


def _exists(source: int, target: int, size: int) -> bool:
    return 0 <= source < size and 0 <= target < size


def _repeated(items: list[Item]) -> Iterator[Event]:
    """The operations in order, those of loops as often as they run."""
    for item in items:
        if isinstance(item, Event):
            if item.operation.kind == "point-to-point":
                yield item
        elif isinstance(item, Call):
            yield from _repeated(item.body)
        elif isinstance(item, Loop) and isinstance(item.count, int):
            for _ in range(min(int(item.count), _LONGEST)):
                yield from _repeated(item.body)


def _uncertain(items: list[Item]) -> bool:
    """Whether some point-to-point operation depends on a branch, or repeats in a loop of unknown length."""
    for item in items:
        if isinstance(item, Opaque):
            return True
        if isinstance(item, Branch) and _communicates([*item.then, *item.otherwise]):
            return True
        if isinstance(item, Loop):
            known = isinstance(item.count, int) and not isinstance(item.count, Sameness)
            if _communicates(item.body) and (not known or _uncertain(item.body)):
                return True
        if isinstance(item, Call) and _uncertain(item.body):
            return True
    return False


def _communicates(items: list[Item]) -> bool:
    return any(event.operation.kind == "point-to-point" for event in events_in(items))
