"""Goes through what two ranks do, side by side."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress

from ranksafe.semantics.rank_flow.comparison.agreement import alike
from ranksafe.semantics.rank_flow.comparison.arguments import mismatch
from ranksafe.semantics.rank_flow.comparison.differences import Difference, Parting
from ranksafe.semantics.rank_flow.comparison.loops import (
    as_often,
    loop_against,
    one_sided_exit,
    uneven_loops,
)
from ranksafe.semantics.rank_flow.comparison.separation import (
    guarded,
    left_behind,
    parted,
    separation,
)
from ranksafe.semantics.rank_flow.comparison.surplus import surplus, surplus_loop
from ranksafe.semantics.rank_flow.comparison.walk import (
    LEFT,
    Frames,
    Seen,
    Undecided,
    in_loop,
    into_step,
    next_item,
    taken,
)
from ranksafe.semantics.rank_flow.traces import (
    Branch,
    Decision,
    Event,
    Exit,
    Item,
    Loop,
    Opaque,
    Passed,
)

_MAXIMUM_PAIRS = 2_000
_MAXIMUM_FOUND = 4


class Comparison:
    """Of two ranks of one world."""

    def __init__(self, ranks: tuple[int, int]) -> None:
        self.ranks = ranks
        self.found: list[Difference] = []
        self._pairs = 0
        self._visited: set[Hashable] = set()

    def run(self, first: list[Item], second: list[Item]) -> list[Difference]:
        """What differs, in order."""
        with suppress(Undecided):
            self._compare(
                Frames(tuple(first), 0, "root", None),
                Frames(tuple(second), 0, "root", None),
                {},
                {},
            )
        return self.found

    def _compare(
        self,
        first: Frames | None,
        second: Frames | None,
        seen_first: Seen,
        seen_second: Seen,
    ) -> None:
        while True:
            self._pairs += 1
            if self._pairs > _MAXIMUM_PAIRS or len(self.found) > _MAXIMUM_FOUND:
                raise Undecided
            first, one = next_item(first, seen_first, self.ranks)
            second, other = next_item(second, seen_second, self.ranks)
            if one is None and other is None:
                return
            if self._was_here(first, second, seen_first, seen_second):
                return
            if isinstance(one, Opaque) or isinstance(other, Opaque):
                raise Undecided
            if _is_abort(one) or _is_abort(other):
                return
            if (
                first is not None
                and second is not None
                and surplus(one, other, first, second, seen_first, seen_second, self.ranks)
            ):
                first, second = self._report(one, other, first, second, seen_first, seen_second)
                continue
            if isinstance(one, Event) and isinstance(other, Event):
                assert first is not None
                assert second is not None
                if not self._same_event(one, other):
                    first, second = self._report(one, other, first, second, seen_first, seen_second)
                    continue
                first, second = first.following(), second.following()
                seen_first, seen_second = {}, {}
                continue
            if isinstance(one, Branch) or isinstance(other, Branch):
                if self._branches(one, other, first, second, seen_first, seen_second):
                    return
                raise Undecided
            found = self._surplus(one, other, first, second, seen_first, seen_second)
            if found is not None:
                self._add(found)
                raise Undecided
            # Ranks may have parted in or before a loop of which each step was followed.
            if (inner := into_step(one, other, first, seen_second)) is not None:
                first = inner
                continue
            if (inner := into_step(other, one, second, seen_first)) is not None:
                second = inner
                continue
            if isinstance(one, Loop) and isinstance(other, Loop):
                if one.place.node is not other.place.node or not as_often(one, other):
                    if one.place.node is other.place.node:
                        self._add(uneven_loops(one, other, self.ranks))
                        return
                    if not alike(one, other):
                        raise Undecided
                assert first is not None
                assert second is not None
                self._add(one_sided_exit(one, other, self.ranks))
                self._add(one_sided_exit(other, one, (self.ranks[1], self.ranks[0])))
                self._compare(
                    first.into(one.body, "loop", one),
                    second.into(other.body, "loop", other),
                    {},
                    {},
                )
                return
            if isinstance(one, Exit) or isinstance(other, Exit):
                # Both at the exit of the process: nothing follows.
                if isinstance(one, Exit) and isinstance(other, Exit):
                    return
            if guarded(one, seen_first, seen_second) or guarded(other, seen_second, seen_first):
                first, second = self._report(one, other, first, second, seen_first, seen_second)
                continue
            if isinstance(one, Loop) or isinstance(other, Loop):
                if left_behind(one, seen_first, seen_second) or left_behind(
                    other, seen_second, seen_first
                ):
                    first, second = self._report(one, other, first, second, seen_first, seen_second)
                    continue
                self._add(loop_against(one, other, self.ranks, seen_first, seen_second))
                return
            first, second = self._report(one, other, first, second, seen_first, seen_second)

    def _surplus(
        self, one: Item | None, other: Item | None, first: Frames | None, second: Frames | None,
        seen_first: Seen, seen_second: Seen,
    ) -> Parting | None:  # fmt: skip
        """A loop that only one of the ranks runs, in front of a loop of both."""
        if not isinstance(one, Loop) or not isinstance(other, Loop):
            return None
        if first is None or second is None or one.place.node is other.place.node:
            return None
        if alike(one, other):
            return None
        return surplus_loop(one, other, first, seen_first, seen_second, self.ranks) or surplus_loop(
            other, one, second, seen_second, seen_first, self.ranks[::-1]
        )

    def _was_here(
        self, first: Frames | None, second: Frames | None, seen_first: Seen, seen_second: Seen
    ) -> bool:
        """Whether a walk through another arm came to the same place, and knew as much."""
        if first is None or second is None:
            return False
        here = (first.position(), second.position(), taken(seen_first), taken(seen_second))
        if here in self._visited:
            return True
        self._visited.add(here)
        return False

    def _same_event(self, one: Event, other: Event) -> bool:
        if one.operation.word != other.operation.word:
            return False
        if (one.group is None) != (other.group is None):
            return False
        self._add(mismatch(one, other))
        return True

    def _branches(
        self, one: Item | None, other: Item | None, first: Frames | None, second: Frames | None,
        seen_first: Seen, seen_second: Seen,
    ) -> bool:  # fmt: skip
        if isinstance(one, Branch) and isinstance(other, Branch):
            if one.place.node is other.place.node or alike(one, other):
                if one.place.node is other.place.node and one.condition.sameness.varies:
                    return self._go_on_behind(first, second)
                assert first is not None
                assert second is not None
                for mine, theirs in ((one.then, other.then), (one.otherwise, other.otherwise)):
                    # What cannot be told behind one arm says nothing of the other.
                    with suppress(Undecided):
                        self._compare(
                            first.into(mine, "block"), second.into(theirs, "block"),
                            dict(seen_first), dict(seen_second),
                        )  # fmt: skip
                return True
        if isinstance(one, Branch) and isinstance(other, Branch):
            passed = [
                isinstance(theirs.get(id(branch.place.node)), Passed)
                for branch, theirs in ((one, seen_second), (other, seen_first))
            ]
            if passed[0] is passed[1]:
                # Two conditions that may have to do with each other: nothing is certain.
                return False
            if passed[1]:
                # Of one of them the other rank has done nothing in either arm: what is in it is one too many.
                one = None
        if isinstance(one, Branch) and parted(one, seen_first, seen_second):
            assert first is not None
            for arm in (one.then, one.otherwise):
                decision = Decision(one.place, arm is one.then, one.condition)
                self._compare(
                    first.into(arm, "block"), second,
                    {**seen_first, id(one.place.node): decision}, dict(seen_second),
                )  # fmt: skip
            return True
        if isinstance(other, Branch) and parted(other, seen_second, seen_first):
            assert second is not None
            for arm in (other.then, other.otherwise):
                decision = Decision(other.place, arm is other.then, other.condition)
                self._compare(
                    first, second.into(arm, "block"),
                    dict(seen_first), {**seen_second, id(other.place.node): decision},
                )  # fmt: skip
            return True
        return False

    def _go_on_behind(self, first: Frames | None, second: Frames | None) -> bool:
        """A branch that each rank decides for itself is judged on its own; both go on behind it."""
        assert first is not None
        assert second is not None
        self._compare(first.following(), second.following(), {}, {})
        return True

    def _report(
        self, one: Item | None, other: Item | None, first: Frames | None, second: Frames | None,
        seen_first: Seen, seen_second: Seen,
    ) -> tuple[Frames | None, Frames | None]:  # fmt: skip
        """Report a mismatch, and say where to go on: behind the collective that only one rank performs."""
        a, b = self.ranks
        mine = one if isinstance(one, Event) else None
        theirs = other if isinstance(other, Event) else None
        if mine is not None and theirs is not None:
            guarded_mine = guarded(mine, seen_first, seen_second)
            if not guarded_mine and guarded(theirs, seen_second, seen_first):
                mine, theirs = None, theirs
                one_waits = False
            else:
                one_waits = True
        else:
            one_waits = mine is not None
        if one_waits:
            assert isinstance(one, Event)
            decision = separation(one, seen_first, seen_second)
            instead = other if isinstance(other, (Event, Exit)) else None
            parting = Parting(one, a, instead, b, None, None)
            first = first.following() if first is not None else None
        else:
            assert isinstance(other, Event)
            decision = separation(other, seen_second, seen_first)
            instead = one if isinstance(one, (Event, Exit)) else None
            parting = Parting(other, b, instead, a, None, None)
            second = second.following() if second is not None else None
        if decision is None:
            raise Undecided
        parting.branch, parting.condition = decision.place, decision.condition
        left = (seen_second if one_waits else seen_first).get(LEFT)
        waiting = first if one_waits else second
        if isinstance(left, Exit) and waiting is not None and in_loop(waiting):
            parting.left = left
        self.found.append(parting)
        if isinstance(one, Exit) or isinstance(other, Exit) or len(self.found) > _MAXIMUM_FOUND:
            raise Undecided
        return first, second

    def _add(self, difference: Difference | None) -> None:
        if difference is not None:
            self.found.append(difference)


def _is_abort(item: Item | None) -> bool:
    return isinstance(item, Exit) and item.kind == "raise"
