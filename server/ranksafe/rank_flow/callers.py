"""What the callers in a file show of a function, which the function alone could not know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ranksafe.rank_flow.issues import Issue, Kind
from ranksafe.rank_flow.traces import Event, Item, Loop, inner_items
from ranksafe.rank_flow.values import Varies

_ANSWERED_BY = {
    Kind.UNEVEN_LOOP: Kind.EVEN_LOOP,
    Kind.COLLECTIVE: Kind.MET,
    Kind.ROOT: Kind.MET,
    Kind.OBJECT_LIST: Kind.MET,
}


def even_loops(traces: list[list[Item]]) -> Iterator[Issue]:
    """Loops in called functions whose number of steps is known and the same in all traces."""
    found: dict[int, list[Loop]] = {}
    for loop in (loop for trace in traces for loop in _loops(trace) if loop.place.calls):
        found.setdefault(id(loop.place.node), []).append(loop)
    for loops in found.values():
        if len({loop.count for loop in loops}) == 1 and not isinstance(loops[0].count, Varies):
            yield Issue(Kind.EVEN_LOOP, loops[0].place, "")


def met(events: Iterable[Event], found: set[int]) -> Iterator[Issue]:
    """The collectives in called functions in which ranks meet, as a barrier for the others in one answers rank 0's in
    another; ``found``: the nodes at which the caller has an issue."""
    nodes = {id(event.place.node): event for event in events if event.place.calls}
    for event in (event for node, event in nodes.items() if node not in found):
        yield Issue(Kind.MET, event.place, "")


def without_answered(issues: Iterable[Issue]) -> list[Issue]:
    """The issues but for those of functions alone that a caller answers."""
    issues = list(issues)
    answers = {
        (issue.kind, id(issue.place.node))
        for issue in issues
        if issue.kind in _ANSWERED_BY.values()
    }
    return [
        issue
        for issue in issues
        if issue.kind not in _ANSWERED_BY.values()
        and (
            issue.place.calls or (_ANSWERED_BY.get(issue.kind), id(issue.place.node)) not in answers
        )
    ]


def _loops(items: list[Item]) -> Iterator[Loop]:
    for item in items:
        if isinstance(item, Loop):
            yield item
        yield from _loops(inner_items(item))
