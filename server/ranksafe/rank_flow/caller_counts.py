"""Loops that a caller in the file gives as much data on all ranks: what the function alone could not know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ranksafe.rank_flow.issues import Issue, Kind
from ranksafe.rank_flow.traces import Branch, Call, Item, Loop, Place
from ranksafe.rank_flow.values import Varies


def even_loops(traces: list[list[Item]]) -> Iterator[Issue]:
    """Loops in called functions whose number of steps is known and the same in all traces."""
    counts: dict[int, set[int]] = {}
    places: dict[int, Place] = {}
    for trace in traces:
        for loop in _loops(trace):
            if loop.place.calls:
                key = id(loop.place.node)
                known = not isinstance(loop.count, Varies)
                counts.setdefault(key, set()).add(int(loop.count) if known else -1)
                places[key] = loop.place
    for key, found in counts.items():
        if len(found) == 1 and -1 not in found:
            yield Issue(Kind.EVEN_LOOP, places[key], "")


def without_even_loops(issues: Iterable[Issue]) -> list[Issue]:
    """The issues but for uneven loops of functions whose callers say that they are even."""
    found = list(issues)
    even = {id(issue.place.node) for issue in found if issue.kind is Kind.EVEN_LOOP}
    return [
        issue
        for issue in found
        if issue.kind is not Kind.EVEN_LOOP
        and not (
            issue.kind is Kind.UNEVEN_LOOP
            and not issue.place.calls
            and id(issue.place.node) in even
        )
    ]


def _loops(items: list[Item]) -> Iterator[Loop]:
    for item in items:
        if isinstance(item, Loop):
            yield item
        if isinstance(item, (Loop, Call)):
            yield from _loops(item.body)
        elif isinstance(item, Branch):
            yield from _loops([*item.then, *item.otherwise])
