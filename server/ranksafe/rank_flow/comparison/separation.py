"""Where ranks separated: the branches that led them to different places, or to a collective more on one of them."""

from __future__ import annotations

import ast

from ranksafe.rank_flow.comparison.walk import EXIT, Frames, Seen, Side, next_item
from ranksafe.rank_flow.traces import (
    Branch,
    Decision,
    Event,
    Exit,
    Item,
    Loop,
    Passed,
    Place,
    events_in,
    inner_items,
)

_FURTHER = 8


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


def surplus(mine: Side, theirs: Side, ranks: tuple[int, int]) -> bool:
    """Whether one of two items is a collective under a rank guard, and both ranks come to the other.

    Where the other is a collective of the same name, the library pairs them by their order: the ranks go on with each
    other's values until the last one has no partner.
    """
    one, other = mine.item, theirs.item
    if one is None or other is None or one.place.node is other.place.node:
        return False
    return any(_is_surplus(*sides, ranks) for sides in ((mine, theirs), (theirs, mine)))


def _is_surplus(side: Side, others: Side, ranks: tuple[int, int]) -> bool:
    item, rest = side.item, others.item
    if not isinstance(item, Event) or not isinstance(rest, (Event, Branch, Loop)):
        return False
    decision = separation(item, side.seen, others.seen)
    if not inside(item, decision):
        return False
    if isinstance(rest, Event) and (
        rest.operation.word != item.operation.word
        or inside(rest, separation(rest, others.seen, side.seen))
    ):
        return False
    frames = _behind_guard(side, decision, rest, ranks)
    word = item.operation.word
    # A guard of the other ranks further on may make up for it.
    return frames is not None and 1 + _left(frames, word) > _left(others.frames, word)


def _behind_guard(
    side: Side, decision: Decision | None, rest: Item, ranks: tuple[int, int]
) -> Frames | None:
    """Where a rank comes to an item that the others stand at, behind the collectives of its own branch."""
    frames, following = side.frames, side.item
    for _ in range(_FURTHER):
        if not isinstance(following, Event) or not inside(following, decision):
            break
        if frames is None:
            return None
        frames, following = next_item(frames.following(), {}, ranks)
    arrived = following is not None and following.place.node is rest.place.node
    return frames if arrived else None


def _left(frames: Frames | None, word: str) -> int:
    """How often a collective is still written on the way."""
    if frames is None:
        return 0
    here = events_in(list(frames.items[frames.index :]))
    return sum(event.operation.word == word for event in here) + _left(frames.outer, word)
