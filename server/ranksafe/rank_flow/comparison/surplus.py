"""A collective more on one rank, where what follows on all ranks could hide it."""

from __future__ import annotations

from ranksafe.rank_flow.comparison.separation import inside, separation
from ranksafe.rank_flow.comparison.walk import Frames, Side, next_item
from ranksafe.rank_flow.traces import Branch, Decision, Event, Item, Loop, events_in

_FURTHER = 8


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
