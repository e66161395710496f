"""Where ranks separated: the branches that led them to different places."""

from __future__ import annotations

import ast

from ranksafe.semantics.rank_flow.comparison.walk import EXIT, Seen, contains
from ranksafe.semantics.rank_flow.traces import (
    Branch,
    Call,
    Decision,
    Event,
    Exit,
    Item,
    Loop,
    Passed,
    events_in,
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


def left_behind(item: Item | None, mine: Seen, theirs: Seen) -> bool:
    """Whether the other rank has returned, because of its rank, from the call in which this one waits."""
    exit_, decision = theirs.get(EXIT), separation(item, mine, theirs)
    if not isinstance(item, Event) or not isinstance(exit_, Exit) or decision is None:
        return False
    left = [id(call) for call, _ in exit_.place.calls]
    here = [id(call) for call, _ in item.place.calls[: len(left)]]
    same_call = exit_.kind == "return" and bool(left) and left == here
    return same_call and contains(decision.place.node, exit_.place)


def separation(event: Item | None, mine: Seen, theirs: Seen) -> Decision | None:
    """The branch at which the two ranks went different ways before one of them came to a collective.

    The outermost one around the collective; else the one in which the other rank left; else the last.
    """
    differing = [
        decision
        for key, decision in mine.items()
        if isinstance(decision, Decision) and not _same_way(decision, theirs.get(key))
    ]
    # An undecided branch that the other rank passed, undecided too, led both the same way.
    for decision in sorted(differing, key=lambda item: _led_both(item, theirs)):
        if isinstance(event, Event) and inside(event, decision):
            return decision
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


def _led_both(decision: Decision, theirs: Seen) -> bool:
    passed = isinstance(theirs.get(id(decision.place.node)), Passed)
    return passed and not decision.condition.sameness.varies


def inside(event: Event, decision: Decision | None) -> bool:
    """Whether the collective stands in the branch itself."""
    if decision is None:
        return False
    if isinstance(decision.place.node, (ast.Name, ast.Attribute, ast.Call)):
        # A decorator decides for everything that the call of its function does.
        call = decision.place.calls[-1:]
        return any(item[0] is call[0][0] for item in event.place.calls if call)
    return contains(decision.place.node, event.place)


def _same_way(decision: Decision, other: Decision | Passed | Exit | None) -> bool:
    return isinstance(other, Decision) and other.taken == decision.taken


def decision_around(items: list[Item], event: Event) -> Decision | None:
    """The branch inside a loop that leads a rank to a collective."""
    for item in items:
        if isinstance(item, Decision) and contains(item.place.node, event.place):
            return item
        inner = item.body if isinstance(item, (Loop, Call)) else []
        if isinstance(item, Branch):
            inner = [*item.then, *item.otherwise]
        found = decision_around(inner, event)
        if found is not None:
            return found
    return None


def decision_before(items: list[Item], event: Event) -> Decision | None:
    """The last branch inside a loop that a rank decides on the way to a collective, which need not stand in it."""
    found: Decision | None = None
    for item in items:
        if item is event:
            return found
        if isinstance(item, Decision) and item.condition.sameness.varies:
            found = item
        elif isinstance(item, (Loop, Call)) and any(inner is event for inner in events_in([item])):
            return decision_before(item.body, event) or found
    return None
