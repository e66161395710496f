"""A collective more on one rank, where what follows on all ranks could hide it."""

from __future__ import annotations

from collections.abc import Iterator

from ranksafe.semantics.rank_flow.comparison.differences import Parting
from ranksafe.semantics.rank_flow.comparison.separation import (
    inside,
    separation,
)
from ranksafe.semantics.rank_flow.comparison.walk import Frames, Seen, contains, next_item, skipped
from ranksafe.semantics.rank_flow.traces import Branch, Event, Item, Loop, events_in

_FURTHER = 8


def surplus(
    one: Item | None, other: Item | None, first: Frames, second: Frames, seen_first: Seen,
    seen_second: Seen, ranks: tuple[int, int],
) -> bool:  # fmt: skip
    """Whether one of two items is a collective under a rank guard, and both ranks come to the other.

    Where the other is a collective of the same name, the library pairs them by their order: the ranks go on with each
    other's values until the last one has no partner. ``first`` and ``second`` stand at ``one`` and ``other``.
    """
    if one is None or other is None or _same_place(one, other):
        return False
    for item, rest, frames, behind, mine, theirs in (
        (one, other, first, second, seen_first, seen_second),
        (other, one, second, first, seen_second, seen_first),
    ):
        if not isinstance(item, Event) or not isinstance(rest, (Event, Branch, Loop)):
            continue
        decision = separation(item, mine, theirs)
        if not inside(item, decision):
            continue
        if isinstance(rest, Event):
            if rest.operation.word != item.operation.word:
                continue
            if inside(rest, separation(rest, theirs, mine)):
                return False
        following: Item | None = item
        for _ in range(_FURTHER):
            if not isinstance(following, Event) or not inside(following, decision):
                break
            behind_it, following = next_item(frames.following(), {}, ranks)
            if behind_it is None:
                return False
            frames = behind_it
        if following is None or not _same_place(following, rest):
            continue
        # A guard of the other ranks further on may make up for it.
        word = item.operation.word
        if 1 + _left(frames, word) > _left(behind, word):
            return True
    return False


def surplus_loop(
    loop: Loop, rest: Item, frames: Frames, mine: Seen, theirs: Seen, ranks: tuple[int, int]
) -> Parting | None:
    """A loop with collectives under a guard of one rank, behind which this rank comes to where the other one is.

    ``frames`` stands at the loop, the other rank at ``rest``.
    """
    event = next((item for item in events_in(loop.body, certain=True)), None)
    if event is None or loop.joined or skipped(event, ranks):
        return None
    decision = separation(event, mine, theirs)
    if decision is None or not inside(event, decision):
        return None
    following: Item | None = loop
    for _ in range(_FURTHER):
        if following is None or not contains(decision.place.node, following.place):
            break
        behind_it, following = next_item(frames.following(), {}, ranks)
        if behind_it is None:
            return None
        frames = behind_it
    if following is None or not _same_place(following, rest):
        return None
    return Parting(event, ranks[0], None, ranks[1], decision.place, decision.condition)


def _same_place(one: Item, other: Item) -> bool:
    """Whether two ranks came to the same place, by the same calls."""
    ways = [[id(call) for call, _ in item.place.calls] for item in (one, other)]
    return one.place.node is other.place.node and ways[0] == ways[1]


def _left(frames: Frames | None, word: str) -> int:
    """How often a collective is still written on the way."""
    return sum(event.operation.word == word for event in events_in(list(_rest(frames))))


def _rest(frames: Frames | None) -> Iterator[Item]:
    while frames is not None:
        yield from frames.items[frames.index :]
        frames = frames.outer
