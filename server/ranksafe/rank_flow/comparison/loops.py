"""Loops that do not fit together."""

from __future__ import annotations

from collections.abc import Iterator

from ranksafe.rank_flow.comparison.agreement import ends_together
from ranksafe.rank_flow.comparison.differences import Parting
from ranksafe.rank_flow.comparison.separation import contains, decision_around, inside, separation
from ranksafe.rank_flow.comparison.walk import EXIT, Seen, Undecided, skipped
from ranksafe.rank_flow.traces import Branch, Decision, Event, Exit, Item, Loop, events_in
from ranksafe.rank_flow.values import Constant, Sequence, Value, Varies


def one_sided_exit(mine: Loop, theirs: Loop, ranks: tuple[int, int]) -> Parting | None:
    """A loop that only one rank leaves, because of what only it looks at."""
    event = next(
        (item for item in events_in(theirs.body, certain=True) if not skipped(item, ranks)), None
    )
    if event is None or mine.joined:
        return None
    there = {id(item.place.node) for item in _exits_of(theirs.body)}
    for exit_ in _exits_of(mine.body):
        if id(exit_.place.node) in there:
            continue
        for item in _all_items(mine.body):
            if isinstance(item, Decision) and item.condition.varies.certain:
                if contains(item.place.node, exit_.place):
                    return Parting(
                        event, ranks[1], None, ranks[0], item.place, item.condition, exit_
                    )
    return None


def uneven_loops(one: Loop, other: Loop, ranks: tuple[int, int]) -> Parting | None:
    """One loop that ranks run unequally often."""
    longer = one
    if isinstance(one.count, int) and isinstance(other.count, int):
        if not isinstance(one.count, Varies) and one.count < other.count:
            longer, ranks = other, (ranks[1], ranks[0])
    # How often a rank sends and receives may well depend on it: partners are counted elsewhere.
    certain = events_in(longer.body, certain=True)
    event = next((item for item in certain if not skipped(item, ranks)), None)
    if event is not None and not longer.joined and not ends_together(longer):
        return Parting(
            event, ranks[0], None, ranks[1], longer.place, longer.source,
            uneven=not _counts(longer.source),
        )  # fmt: skip
    return None


def _counts(source: Value | None) -> bool:
    """Whether a loop only counts, as ``range(rank)`` does, and goes through nothing."""
    if not isinstance(source, Sequence) or source.length.certain:
        return source is None
    numbers = [item.constant for item in source.items if isinstance(item, Constant)]
    return numbers == list(range(len(source.items)))


def loop_against(
    one: Item | None, other: Item | None, ranks: tuple[int, int],
    seen_first: Seen, seen_second: Seen,
) -> Parting | None:  # fmt: skip
    """A loop where the other rank has none: certain when the loop certainly runs and its body certainly waits.

    Raises Undecided.
    """
    loop, rest, ranks = (
        (one, other, ranks) if isinstance(one, Loop) else (other, one, (ranks[1], ranks[0]))
    )
    assert isinstance(loop, Loop)
    seen = (seen_first, seen_second) if loop is one else (seen_second, seen_first)
    event = next(events_in(loop.body, certain=True), None)
    if event is None or loop.joined or skipped(event, ranks):
        raise Undecided
    decision = decision_around(loop.body, event) or separation(event, *seen)
    if decision is None or not (inside(event, decision) or EXIT in seen[1]):
        raise Undecided
    if rest is None or isinstance(rest, (Event, Exit)):
        what = rest if isinstance(rest, (Event, Exit)) else None
        if isinstance(what, Event) and what.operation.word == event.operation.word:
            raise Undecided
        return Parting(event, ranks[0], what, ranks[1], decision.place, decision.condition)
    return None


def _exits_of(items: list[Item]) -> Iterator[Exit]:
    """Exits out of the loop whose body this is, in branches too."""
    for item in items:
        if isinstance(item, Exit) and item.kind in ("break", "return"):
            yield item
        elif isinstance(item, Branch):
            yield from _exits_of([*item.then, *item.otherwise])


def _all_items(items: list[Item]) -> Iterator[Item]:
    for item in items:
        yield item
        if isinstance(item, Branch):
            yield from _all_items([*item.then, *item.otherwise])
