"""Loops that do not fit together, and loops that ranks leave together, however much data each of them has."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.rank_flow.comparison.differences import Parting
from ranksafe.rank_flow.comparison.separation import contains, decision_around, inside, separation
from ranksafe.rank_flow.comparison.walk import EXIT, Seen, Undecided, skipped
from ranksafe.rank_flow.traces import Branch, Decision, Event, Exit, Item, Loop, events_in
from ranksafe.rank_flow.values import Constant, Sequence, Value, Varies, is_agreed

_LOCAL = ("torch.", "builtins.", "math.", "numpy.", "time.", "os.", "random.")


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


def ends_together(loop: Loop) -> bool:
    """Whether a loop is left when the ranks have agreed to: by the result of a collective, by a limit, or by what a
    function says that is not known here."""
    return any(
        is_agreed(branch.condition)
        or (not branch.condition.varies.certain and _asks(branch))
        or (isinstance(loop.count, Varies) and _is_limit(branch))
        for branch in _leaving(loop.body)
    )


def _leaving(items: list[Item]) -> Iterator[Branch]:
    """Branches that lead out of the loop with this body."""
    for item in items:
        if isinstance(item, Branch):
            if any(
                isinstance(inner, Exit) and inner.kind in ("break", "return")
                for inner in (*item.then, *item.otherwise)
            ):
                yield item
            yield from _leaving([*item.then, *item.otherwise])


def _is_limit(branch: Branch) -> bool:
    """Whether a condition is ``step >= 100``: as many steps as every rank has, most likely."""
    test = getattr(branch.place.node, "test", None)
    return (
        branch.condition.varies is Varies.NO
        and isinstance(test, ast.Compare)
        and isinstance(test.ops[0], (ast.Gt, ast.GtE, ast.Lt, ast.LtE, ast.Eq))
    )


def _asks(branch: Branch) -> bool:
    """Whether a condition calls something that may perform collectives without being seen to."""
    test = getattr(branch.place.node, "test", None)
    if not isinstance(test, ast.expr):
        return False
    for call in ast.walk(test):
        if isinstance(call, ast.Call):
            name = branch.place.module.qualified_name(call.func)
            if name is None or not name.startswith(_LOCAL):
                return True
    return False
