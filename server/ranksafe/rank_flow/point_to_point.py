"""Sends and receives of all ranks, matched."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from ranksafe.rank_flow.traces import Branch, Call, Event, Item, Loop, Opaque, events_in
from ranksafe.rank_flow.values import Varies, whole_number

_BLOCKING = frozenset({"send", "recv", "send_object_list", "recv_object_list"})
_LONGEST = 64
_SENDS = frozenset({"send", "isend", "send_object_list"})
_SMALLEST_LINE = 3
"""Of two ranks, the neighbours of each are the same: only more ranks show a first and a last one."""


def unmatched(traces: list[list[Item]], *, whole: bool) -> Iterator[Event]:
    """Point-to-point operations without a partner, where everything about them is known.

    ``whole``: whether the traces are all that the ranks send: otherwise a partner may be elsewhere, and only ranks that
    wait for each other inside are certain.
    """
    sequences: list[list[Event]] = []
    for trace in traces:
        if _uncertain(trace):
            return
        sequences.append(list(_repeated(trace)))
    if any(whole_number(event.peer) is None for events in sequences for event in events):
        return
    words = {event.operation.word in _SENDS for events in sequences for event in events}
    if len(words) < 2:
        return
    beyond = _beyond_the_ends(sequences)
    partnerless = _partnerless(sequences)
    if whole:
        if beyond is not None:
            yield beyond
            return
        receives = [event for event in partnerless if event.operation.word not in _SENDS]
        yield from receives or partnerless
    if not partnerless and beyond is None:
        yield from _stuck(sequences)


def _beyond_the_ends(sequences: list[list[Event]]) -> Event | None:
    """The first operation with the neighbour that the last rank, or rank 0, does not have."""
    size = len(sequences)
    if size < _SMALLEST_LINE:
        return None
    found: list[tuple[int, Event]] = []
    for rank, neighbour in ((0, -1), (size - 1, size)):
        for index, event in enumerate(sequences[rank]):
            if (
                whole_number(event.peer) == neighbour
                and event.peer is not None
                and event.peer.origin is not None
            ):
                found.append((index, event))
                break
    return min(found, key=lambda item: item[0])[1] if found else None


def _partnerless(sequences: list[list[Event]]) -> list[Event]:
    """Operations in excess of those of the other rank."""
    tagged = all(_tag(event) is not None for events in sequences for event in events)
    counts: dict[tuple[int, int, int, bool], list[Event]] = {}
    for rank, events in enumerate(sequences):
        for event in events:
            peer = whole_number(event.peer)
            assert peer is not None
            sends = event.operation.word in _SENDS
            pair = (rank, peer) if sends else (peer, rank)
            tag = (_tag(event) or 0) if tagged else 0
            counts.setdefault((*pair, tag, sends), []).append(event)
    found = []
    for (source, target, tag, sends), events in counts.items():
        partners = counts.get((source, target, tag, not sends), [])
        if len(events) > len(partners) and {source, target} <= {*range(len(sequences))}:
            found.append(events[len(partners)])
    return found


def _stuck(sequences: list[list[Event]]) -> Iterator[Event]:
    """The operation at which ranks wait for each other, when each send waits for its receive.

    The first send of a pair meets the first receive of it, and so on; what does not block is only begun.
    """
    size = len(sequences)
    begun: Counter[tuple[int, int, bool]] = Counter()
    at = [0] * size
    waiting: list[tuple[tuple[int, int, bool], int] | None] = [None] * size
    moved = True
    while moved:
        moved = False
        for rank, events in enumerate(sequences):
            while at[rank] < len(events):
                event = events[at[rank]]
                held = waiting[rank]
                if held is None:
                    peer = whole_number(event.peer)
                    if peer is None or not 0 <= peer < size:
                        return
                    sends = event.operation.word in _SENDS
                    key = (rank, peer, True) if sends else (peer, rank, False)
                    held = waiting[rank] = (key, begun[key])
                    begun[key] += 1
                    moved = True
                (source, target, sends), number = held
                if _blocks(event) and begun[source, target, not sends] <= number:
                    break
                at[rank] += 1
                waiting[rank] = None
    for rank, events in enumerate(sequences):
        if at[rank] < len(events):
            yield events[at[rank]]
            return


def _blocks(event: Event) -> bool:
    """Whether the rank goes on only when the other one has come: ``isend(...).wait()`` does, too."""
    if event.operation.word in _BLOCKING:
        return True
    holder = event.place.module.parent(event.place.node)
    return isinstance(holder, ast.Attribute) and holder.attr == "wait"


def _tag(event: Event) -> int | None:
    """The tag, 0 where none is given; None where it is not known."""
    return 0 if event.tag is None else whole_number(event.tag)


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
        if isinstance(item, Branch) and communicates([*item.then, *item.otherwise]):
            return True
        if isinstance(item, Loop):
            known = isinstance(item.count, int) and not isinstance(item.count, Varies)
            if communicates(item.body) and (not known or _uncertain(item.body)):
                return True
        if isinstance(item, Call) and _uncertain(item.body):
            return True
    return False


def communicates(items: list[Item]) -> bool:
    """Whether something is sent or received."""
    return any(event.operation.kind == "point-to-point" for event in events_in(items))
