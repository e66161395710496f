"""Goes through what two ranks do, side by side."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from contextlib import suppress

from ranksafe.rank_flow.comparison.differences import Difference, Mismatch, Parting, mismatch
from ranksafe.rank_flow.comparison.loops import loop_against, one_sided_exit, uneven_loops
from ranksafe.rank_flow.comparison.separation import contains, guarded, parted, separation, surplus
from ranksafe.rank_flow.comparison.walk import LEFT, Side, Undecided, in_loop, taken
from ranksafe.rank_flow.traces import (
    Branch,
    Decision,
    Event,
    Exit,
    Item,
    Loop,
    Opaque,
    Passed,
    performs,
)
from ranksafe.rank_flow.values import Varies

_MAXIMUM_PAIRS = 2_000
_MAXIMUM_FOUND = 4


class Comparison:
    """Of two ranks of one world."""

    def __init__(self, ranks: tuple[int, int]) -> None:
        self.ranks = ranks
        self.found: list[Difference] = []
        self.met: list[Event] = []
        """Collectives that both ranks perform together."""
        self._pairs = 0
        self._visited: set[Hashable] = set()

    def run(self, first: list[Item], second: list[Item]) -> list[Difference]:
        """What differs, in order."""
        with suppress(Undecided):
            self._compare(Side.at_start(self.ranks[0], first), Side.at_start(self.ranks[1], second))
        return self.found

    def _compare(self, mine: Side, theirs: Side) -> None:
        going_on = True
        while going_on:
            self._pairs += 1
            if self._pairs > _MAXIMUM_PAIRS or len(self.found) > _MAXIMUM_FOUND:
                raise Undecided
            mine.advance(self.ranks)
            theirs.advance(self.ranks)
            items = (mine.item, theirs.item)
            if items == (None, None) or self._was_here(mine, theirs):
                return
            if any(isinstance(item, Opaque) for item in items):
                raise Undecided
            going_on = not any(map(_is_abort, items)) and self._judge(mine, theirs)

    def _judge(self, mine: Side, theirs: Side) -> bool:
        """Compare what both come to next; whether the walk goes on."""
        one, other = mine.item, theirs.item
        if surplus(mine, theirs, self.ranks):
            return self._report(mine, theirs)
        if isinstance(one, Event) and isinstance(other, Event):
            if not self._same_event(one, other):
                return self._report(mine, theirs)
            mine.pass_by()
            theirs.pass_by()
            return True
        if isinstance(one, Branch) or isinstance(other, Branch):
            if self._branches(mine, theirs):
                return False
            raise Undecided
        if isinstance(one, Loop) and isinstance(other, Loop):
            self._loops(mine, one, theirs, other)
            return False
        if all(item is None or isinstance(item, Exit) for item in (one, other)):
            # Neither performs anything more here.
            return False
        if guarded(one, mine.seen, theirs.seen) or guarded(other, theirs.seen, mine.seen):
            return self._report(mine, theirs)
        if isinstance(one, Loop) or isinstance(other, Loop):
            self._add(loop_against(one, other, self.ranks, mine.seen, theirs.seen))
            return False
        return self._report(mine, theirs)

    def _was_here(self, mine: Side, theirs: Side) -> bool:
        """Whether a walk through another arm came to the same place, and knew as much."""
        if mine.frames is None or theirs.frames is None:
            return False
        here = (
            *(mine.frames.position(), theirs.frames.position()),
            *(taken(mine.seen), taken(theirs.seen)),
        )
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
        self.met += (one, other)
        return True

    def _loops(self, mine: Side, one: Loop, theirs: Side, other: Loop) -> None:
        same = one.place.node is other.place.node
        if same and one.count != other.count:
            self._add(uneven_loops(one, other, self.ranks))
            return
        if not same and not _alike(one, other):
            raise Undecided
        self._add(one_sided_exit(one, other, self.ranks))
        self._add(one_sided_exit(other, one, (self.ranks[1], self.ranks[0])))
        self._compare(mine.inside(one.body, "loop", one), theirs.inside(other.body, "loop", other))

    def _branches(self, mine: Side, theirs: Side) -> bool:
        """Compare the arms of branches; False where nothing is certain."""
        one, other = mine.item, theirs.item
        if isinstance(one, Branch) and isinstance(other, Branch):
            if one.place.node is other.place.node or _alike(one, other):
                return self._same_branch(mine, one, theirs, other)
            passed = [
                isinstance(side.seen.get(id(branch.place.node)), Passed)
                for branch, side in ((one, theirs), (other, mine))
            ]
            if passed[0] is passed[1]:
                # Two conditions that may have to do with each other.
                return False
            if passed[1]:
                # Of one of them the other rank has done nothing in either arm: what is in it is one too many.
                one = None
        if isinstance(one, Branch) and parted(one, mine.seen, theirs.seen):
            for arm, side in _arms(one, mine):
                self._compare(side.inside(arm, "block", seen=side.seen), theirs.copy())
            return True
        if isinstance(other, Branch) and parted(other, theirs.seen, mine.seen):
            for arm, side in _arms(other, theirs):
                self._compare(mine.copy(), side.inside(arm, "block", seen=side.seen))
            return True
        return False

    def _same_branch(self, mine: Side, one: Branch, theirs: Side, other: Branch) -> bool:
        if one.place.node is other.place.node and one.condition.varies.certain:
            # Each rank decides it for itself, which is judged on its own; both go on behind it.
            mine.pass_by()
            theirs.pass_by()
            self._compare(mine, theirs)
            return True
        before = len(self.found)
        for arm, their_arm in ((one.then, other.then), (one.otherwise, other.otherwise)):
            # What cannot be told behind one arm says nothing of the other.
            with suppress(Undecided):
                self._compare(
                    mine.inside(arm, "block", seen=mine.seen),
                    theirs.inside(their_arm, "block", seen=theirs.seen),
                )
        if one.condition.varies is not Varies.NO:
            self.found[before:] = [
                item for item in self.found[before:] if not _may_cross(item, one)
            ]
        return True

    def _report(self, mine: Side, theirs: Side) -> bool:
        """Report a mismatch, and go on behind the collective that only one rank performs."""
        waiting, others = mine, theirs
        if isinstance(theirs.item, Event) and (
            not isinstance(mine.item, Event)
            or (
                not guarded(mine.item, mine.seen, theirs.seen)
                and guarded(theirs.item, theirs.seen, mine.seen)
            )
        ):
            waiting, others = theirs, mine
        event, instead = waiting.item, others.item
        assert isinstance(event, Event)
        decision = separation(event, waiting.seen, others.seen)
        if decision is None:
            raise Undecided
        found = Parting(
            event, waiting.rank, instead if isinstance(instead, (Event, Exit)) else None,
            others.rank, decision.place, decision.condition,
        )  # fmt: skip
        waiting.step()
        left = others.seen.get(LEFT)
        if isinstance(left, Exit) and waiting.frames is not None and in_loop(waiting.frames):
            found.left = left
        self.found.append(found)
        if isinstance(instead, Exit) or len(self.found) > _MAXIMUM_FOUND:
            raise Undecided
        return True

    def _add(self, difference: Difference | None) -> None:
        if difference is not None:
            self.found.append(difference)


def _arms(branch: Branch, side: Side) -> list[tuple[list[Item], Side]]:
    """Both arms of a branch, each with the walk that knows it has taken it."""
    made = []
    for arm in (branch.then, branch.otherwise):
        decision = Decision(branch.place, arm is branch.then, branch.condition)
        walk = side.copy()
        walk.seen[id(branch.place.node)] = decision
        made.append((arm, walk))
    return made


def _alike(one: Branch | Loop, other: Branch | Loop) -> bool:
    """Whether two conditions are written the same and mean the same on all ranks."""
    if isinstance(one, Branch) and isinstance(other, Branch):
        if one.condition.varies.certain or other.condition.varies.certain:
            return False
    return ast.dump(_head(one)) == ast.dump(_head(other))


def _may_cross(difference: Difference, branch: Branch) -> bool:
    """Whether arguments differ in one arm while a rank in the other one may be the partner: the owner of a tensor names
    itself, the others name the owner."""
    if not isinstance(difference, Mismatch) or not contains(
        branch.place.node, difference.event.place
    ):
        return False
    word = difference.event.operation.word
    return performs(branch.then, word) and performs(branch.otherwise, word)


def _head(item: Branch | Loop) -> ast.AST:
    node = item.place.node
    return getattr(node, "iter", getattr(node, "test", node))


def _is_abort(item: Item | None) -> bool:
    return isinstance(item, Exit) and item.kind == "raise"
