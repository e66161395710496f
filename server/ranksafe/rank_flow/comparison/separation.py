"""Where ranks separated: the branches that led them to different places."""

from __future__ import annotations

import ast

from ranksafe.rank_flow.comparison.walk import EXIT, Seen
from ranksafe.rank_flow.traces import (
    Branch,
    Decision,
    Event,
    Exit,
    Item,
    Passed,
    Place,
    inner_items,
)


def parted(branch: Branch, mine: Seen, theirs: Seen) -> bool:
    """Whether the other rank has passed the branch, or was led around it by its rank."""
    if id(branch.place.node) in theirs:
        return True
    return any(
        isinstance(decision, Decision)
        and not _same_way(decision, theirs.get(key))
        and contains(decision.place.node, branch.place)
        for key, decision in mine.items()
    )


def guarded(item: Item | None, mine: Seen, theirs: Seen) -> bool:
    """Whether a collective stands in a branch that the other rank does not take."""
    return isinstance(item, Event) and inside(item, separation(item, mine, theirs))


def separation(event: Item | None, mine: Seen, theirs: Seen) -> Decision | None:
    """The branch at which the two ranks went different ways before one of them came to a collective.

    The outermost one around the collective; else the one in which the other rank left; else the last.
    """
    differing = [
        decision
        for key, decision in mine.items()
        if isinstance(decision, Decision) and not _same_way(decision, theirs.get(key))
    ]
    around = [item for item in differing if isinstance(event, Event) and inside(event, item)]
    if around:
        return next((item for item in around if item.condition.varies.certain), around[0])
    exit_ = theirs.get(EXIT)
    others = [
        decision
        for key, decision in theirs.items()
        if isinstance(decision, Decision) and not _same_way(decision, mine.get(key))
    ]
    for decision in others:
        if isinstance(exit_, Exit) and contains(decision.place.node, exit_.place):
            return decision
    return differing[-1] if differing else others[-1] if others else None


def inside(event: Event, decision: Decision | None) -> bool:
    """Whether the collective stands in the branch itself."""
    return decision is not None and contains(decision.place.node, event.place)


def contains(node: ast.AST, place: Place) -> bool:
    """Whether a place, or a call on the way to it, lies inside a node."""
    return any(
        module.is_inside(inner, node)
        for inner, module in ((place.node, place.module), *place.calls)
    )


def _same_way(decision: Decision, other: Decision | Passed | Exit | None) -> bool:
    return isinstance(other, Decision) and other.taken == decision.taken


def decision_around(items: list[Item], event: Event) -> Decision | None:
    """The branch inside a loop that leads a rank to a collective."""
    for item in items:
        if isinstance(item, Decision) and contains(item.place.node, event.place):
            return item
        found = decision_around(inner_items(item), event)
        if found is not None:
            return found
    return None
