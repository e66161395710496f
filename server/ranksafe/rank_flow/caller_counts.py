"""Loops that a caller in the file gives as much data on all ranks: what the function alone could not know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ranksafe.rank_flow.issues import Issue, Kind
from ranksafe.rank_flow.traces import Item, Loop, inner_items
from ranksafe.rank_flow.values import Varies


def even_loops(traces: list[list[Item]]) -> Iterator[Issue]:
    """Loops in called functions whose number of steps is known and the same in all traces."""
    found: dict[int, list[Loop]] = {}
    for loop in (loop for trace in traces for loop in _loops(trace) if loop.place.calls):
        found.setdefault(id(loop.place.node), []).append(loop)
    for loops in found.values():
        if len({loop.count for loop in loops}) == 1 and not isinstance(loops[0].count, Varies):
            yield Issue(Kind.EVEN_LOOP, loops[0].place, "")


def without_even_loops(issues: Iterable[Issue]) -> list[Issue]:
    """The issues but for uneven loops of functions whose callers say that they are even."""
    found = [issue for issue in issues if issue.kind is not Kind.EVEN_LOOP]
    even = {id(issue.place.node) for issue in issues if issue.kind is Kind.EVEN_LOOP}
    return [
        issue
        for issue in found
        if issue.kind is not Kind.UNEVEN_LOOP
        or issue.place.calls
        or id(issue.place.node) not in even
    ]


def _loops(items: list[Item]) -> Iterator[Loop]:
    for item in items:
        if isinstance(item, Loop):
            yield item
        yield from _loops(inner_items(item))
