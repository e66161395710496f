"""A collective more on one rank, where the next one that all ranks perform has the same name."""

from __future__ import annotations

from collections.abc import Iterator

from ranksafe.semantics.rank_flow.comparison.separation import guarded
from ranksafe.semantics.rank_flow.comparison.walk import Frames, Seen, next_item
from ranksafe.semantics.rank_flow.traces import Event, Item, events_in


def surplus(
    one: Event, other: Event, first: Frames, second: Frames, seen_first: Seen, seen_second: Seen,
    ranks: tuple[int, int],
) -> bool:  # fmt: skip
    """Whether one of two collectives of the same name stands under a rank guard, and both ranks perform the other.

    The library pairs them by their order, so the ranks go on with each other's values until the last one has no
    partner. ``first`` and ``second`` stand at ``one`` and ``other``.
    """
    if one.operation.word != other.operation.word or one.place.node is other.place.node:
        return False
    mine = guarded(one, seen_first, seen_second)
    theirs = guarded(other, seen_second, seen_first)
    if mine is theirs:
        return False
    frames, behind, partner = (first, second, other) if mine else (second, first, one)
    _, following = next_item(frames.following(), {}, ranks)
    if not isinstance(following, Event) or following.place.node is not partner.place.node:
        return False
    # A guard of the other ranks further on may make up for it.
    word = one.operation.word
    return _left(frames, word) > _left(behind, word)


def _left(frames: Frames | None, word: str) -> int:
    """How often a collective is still written on the way."""
    return sum(event.operation.word == word for event in events_in(list(_rest(frames))))


def _rest(frames: Frames | None) -> Iterator[Item]:
    while frames is not None:
        yield from frames.items[frames.index :]
        frames = frames.outer
