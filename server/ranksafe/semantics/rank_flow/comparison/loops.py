"""Loops that do not fit together."""

from __future__ import annotations

from collections.abc import Iterator

from ranksafe.semantics.rank_flow.comparison.agreement import ends_together
from ranksafe.semantics.rank_flow.comparison.differences import Parting
from ranksafe.semantics.rank_flow.comparison.separation import (
    decision_around,
    decision_before,
    inside,
    separation,
)
from ranksafe.semantics.rank_flow.comparison.walk import EXIT, Seen, Undecided, contains, skipped
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
from ranksafe.semantics.rank_flow.values import Known, Many, Sameness, Value, origin_of


def one_sided_exit(mine: Loop, theirs: Loop, ranks: tuple[int, int]) -> Parting | None:
    """A loop that only one rank leaves, because of what only it looks at."""
    event = next(
        (item for item in events_in(theirs.body, certain=True) if not skipped(item, ranks)), None
    )
    if event is None or mine.joined:
        return None
    there = {id(item.place.node) for item in _exits_of(theirs.body)}
    decided = {
        id(item.place.node)
        for item in _all_items(theirs.body)
        if isinstance(item, Decision) and item.condition.sameness.varies
    }
    for exit_ in _exits_of(mine.body):
        if id(exit_.place.node) in there:
            continue
        for item in _all_items(mine.body):
            if isinstance(item, Decision) and item.condition.sameness.varies:
                if contains(item.place.node, exit_.place):
                    return Parting(
                        event, ranks[1], None, ranks[0], item.place, item.condition, exit_
                    )
            elif isinstance(item, Branch) and id(item.place.node) in decided:
                # What only this rank was told may make it leave; the others know that they stay.
                if contains(item.place.node, exit_.place):
                    return Parting(
                        event, ranks[1], None, ranks[0], item.place, item.condition, exit_
                    )
    return None


def as_often(one: Loop, other: Loop) -> bool:
    """Whether nothing says that two ranks run a loop unequally often: one of them may only know more about it."""
    counts = (one.count, other.count)
    open_ = [isinstance(count, Sameness) and not count.varies for count in counts]
    return all(open_) or counts[0] == counts[1]


def uneven_loops(one: Loop, other: Loop, ranks: tuple[int, int]) -> Parting | None:
    """One loop that ranks run unequally often."""
    longer = one
    if isinstance(one.count, int) and isinstance(other.count, int):
        if not isinstance(one.count, Sameness) and one.count < other.count:
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


def counts_by_rank(items: list[Item]) -> bool:
    """Whether a loop goes through a rank's share, of which this rank knows how long it is: with another number of ranks
    the shares may be uneven."""
    for item in items:
        if isinstance(item, Loop):
            exact = not isinstance(item.count, Sameness)
            origin = None if item.source is None else origin_of(item.source)
            if exact and origin is not None and origin.sameness is Sameness.RANK:
                return True
        if isinstance(item, (Loop, Call)) and counts_by_rank(item.body):
            return True
        if isinstance(item, Branch) and counts_by_rank([*item.then, *item.otherwise]):
            return True
    return False


def _counts(source: Value | None) -> bool:
    """Whether a loop only counts, as ``range(rank)`` does, and goes through nothing."""
    if not isinstance(source, Many) or source.length.varies:
        return source is None
    numbers = [item.constant for item in source.items if isinstance(item, Known)]
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
    if event is None and not loop.joined:
        return _in_branch(loop, rest, ranks, seen[1])
    if event is None or loop.joined or skipped(event, ranks):
        raise Undecided
    decision = decision_around(loop.body, event) or separation(event, *seen)
    if decision is None or not (inside(event, decision) or EXIT in seen[1]):
        # What is called may have been chosen before, or a call may end before it comes to the collective.
        decision = decision_before(loop.body, event)
    if decision is None:
        raise Undecided
    if rest is None or isinstance(rest, (Event, Exit)):
        what = rest if isinstance(rest, (Event, Exit)) else None
        if isinstance(what, Event) and what.operation.word == event.operation.word:
            raise Undecided
        return Parting(event, ranks[0], what, ranks[1], decision.place, decision.condition)
    return None


def _in_branch(loop: Loop, rest: Item | None, ranks: tuple[int, int], theirs: Seen) -> Parting:
    """A loop that performs collectives in branches only, of which the other rank knows that it does not take them.

    Raises Undecided.
    """
    passed = theirs.get(id(loop.place.node))
    decided = passed.decisions if isinstance(passed, Passed) else ()
    for event in events_in(loop.body):
        if skipped(event, ranks):
            continue
        decision = decision_around(loop.body, event) or next(
            (item for item in decided if contains(item.place.node, event.place)), None
        )
        if decision is None or not decision.condition.sameness.varies:
            continue
        if rest is None or isinstance(rest, (Event, Exit)):
            what = rest if isinstance(rest, (Event, Exit)) else None
            if isinstance(what, Event) and what.operation.word == event.operation.word:
                raise Undecided
            return Parting(event, ranks[0], what, ranks[1], decision.place, decision.condition)
    raise Undecided


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
