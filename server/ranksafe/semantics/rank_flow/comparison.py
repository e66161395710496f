"""Compares what two ranks do, and says where they part."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from ranksafe.semantics.rank_flow.traces import (
    Branch,
    Call,
    Decision,
    Event,
    Exit,
    Item,
    Loop,
    Opaque,
    Passed,
    Place,
    events_in,
    matters,
)
from ranksafe.semantics.rank_flow.values import Known, Sameness, Value

_MAXIMUM_PAIRS = 2_000
_LEFT, _EXIT = 0, 1
"""Keys, among the decisions that were passed, of the last exit out of a loop and of the last exit at all."""
Seen = dict[int, Decision | Passed | Exit]


class Undecided(Exception):
    """The comparison cannot go on without guessing."""


@dataclass(frozen=True, slots=True)
class Frames:
    """Where a walk through a trace stands: the items of the innermost level, the next one, and the levels around."""

    items: tuple[Item, ...]
    index: int
    kind: str
    """``root``, ``call``, ``loop`` or ``block``."""
    outer: Frames | None
    level: Item | None = None

    def following(self) -> Frames:
        """After the item at `index`."""
        return Frames(self.items, self.index + 1, self.kind, self.outer, self.level)

    def into(self, items: list[Item], kind: str, level: Item | None = None) -> Frames:
        """Inside an item; afterwards the walk goes on behind it."""
        return Frames(tuple(items), 0, kind, self.following(), level)


@dataclass(slots=True)
class Parting:
    """Ranks do different things."""

    waiting: Event
    """The collective that only some ranks reach."""
    waits: int
    """A rank that waits there."""
    other: Event | Exit | None
    """What the other rank does instead: another collective, leaving, or nothing more (None)."""
    others: int
    branch: Place | None
    """Where they separated."""
    condition: Value | None
    left: Exit | None = None
    """How the other rank left the loop that the waiting one is in."""


@dataclass(slots=True)
class Mismatch:
    """Both ranks are in the same collective, but not with arguments that fit."""

    what: str
    """``root``, ``shape``, ``dtype``, ``list`` or ``members``."""
    event: Event


Difference = Parting | Mismatch


class Comparison:
    """Of two ranks of one world."""

    def __init__(self, ranks: tuple[int, int]) -> None:
        self.ranks = ranks
        self.found: list[Difference] = []
        self._pairs = 0

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
            if self._pairs > _MAXIMUM_PAIRS:
                raise Undecided
            first, one = self._next(first, seen_first)
            second, other = self._next(second, seen_second)
            if one is None and other is None:
                return
            if isinstance(one, Opaque) or isinstance(other, Opaque):
                raise Undecided
            if _is_abort(one) or _is_abort(other):
                return
            if isinstance(one, Event) and isinstance(other, Event):
                if not self._same_event(one, other):
                    first, second = self._report(one, other, first, second, seen_first, seen_second)
                    continue
                assert first is not None
                assert second is not None
                first, second = first.following(), second.following()
                seen_first, seen_second = {}, {}
                continue
            if isinstance(one, Branch) or isinstance(other, Branch):
                if self._branches(one, other, first, second, seen_first, seen_second):
                    return
                raise Undecided
            if isinstance(one, Loop) and isinstance(other, Loop):
                if one.place.node is not other.place.node or one.count != other.count:
                    if one.place.node is other.place.node:
                        self._uneven_loops(one, other)
                        return
                    if not self._alike(one, other):
                        raise Undecided
                assert first is not None
                assert second is not None
                self._compare_exits(one, other, self.ranks)
                self._compare_exits(other, one, (self.ranks[1], self.ranks[0]))
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
            if self._guarded(one, seen_first, seen_second) or self._guarded(
                other, seen_second, seen_first
            ):
                first, second = self._report(one, other, first, second, seen_first, seen_second)
                continue
            if isinstance(one, Loop) or isinstance(other, Loop):
                self._loop_against(one, other, seen_first, seen_second)
                return
            first, second = self._report(one, other, first, second, seen_first, seen_second)

    # -- walking

    def _next(self, frames: Frames | None, seen: Seen) -> tuple[Frames | None, Item | None]:
        """The next item that matters, calls entered, exits followed, ends of levels left."""
        while frames is not None:
            if frames.index >= len(frames.items):
                if frames.kind == "loop":
                    frames = frames.outer
                    continue
                if frames.kind == "root":
                    return frames, None
                frames = frames.outer
                continue
            item = frames.items[frames.index]
            if isinstance(item, (Decision, Passed)):
                seen[id(item.place.node)] = item
                frames = frames.following()
            elif isinstance(item, Call):
                frames = frames.into(item.body, "call")
            elif isinstance(item, Exit):
                if item.kind in ("exit", "raise"):
                    return frames, item
                seen[_EXIT] = item
                if _in_loop(frames):
                    seen[_LEFT] = item
                frames = _leave(frames, item)
            elif (isinstance(item, Event) and self._skipped(item)) or (
                isinstance(item, (Branch, Loop)) and not matters(_items_of(item))
            ):
                frames = frames.following()
            else:
                return frames, item
        return None, None

    def _skipped(self, event: Event) -> bool:
        """Collectives of groups that are not the business of both ranks, and point-to-point ones."""
        if event.operation.kind == "point-to-point":
            return True
        if not event.group_known:
            return True
        if event.group is None:
            return False
        members = event.group.detail
        return not all(rank in members for rank in self.ranks)

    def _same_event(self, one: Event, other: Event) -> bool:
        if one.operation.word != other.operation.word:
            return False
        if (one.group is None) != (other.group is None):
            return False
        self._compare_arguments(one, other)
        return True

    def _compare_arguments(self, one: Event, other: Event) -> None:
        if one.members is not None and other.members is not None and one.members != other.members:
            self.found.append(Mismatch("members", one))
            return
        roots = [item.root for item in (one, other)]
        if all(isinstance(root, Known) and isinstance(root.constant, int) for root in roots):
            if roots[0] != roots[1]:
                self.found.append(Mismatch("root", one))
                return
        if isinstance(one.shape, tuple) and isinstance(other.shape, tuple):
            if one.shape != other.shape:
                listed = "object" in one.operation.word
                self.found.append(Mismatch("list" if listed else "shape", one))
        elif one.dtype and other.dtype and one.dtype != other.dtype:
            self.found.append(Mismatch("dtype", one))

    # -- branches and loops

    def _branches(
        self, one: Item | None, other: Item | None, first: Frames | None, second: Frames | None,
        seen_first: Seen, seen_second: Seen,
    ) -> bool:  # fmt: skip
        if isinstance(one, Branch) and isinstance(other, Branch):
            if one.place.node is other.place.node or self._alike(one, other):
                if one.place.node is other.place.node and one.condition.sameness.varies:
                    return self._go_on_behind(first, second)
                assert first is not None
                assert second is not None
                for mine, theirs in ((one.then, other.then), (one.otherwise, other.otherwise)):
                    self._compare(
                        first.into(mine, "block"), second.into(theirs, "block"),
                        dict(seen_first), dict(seen_second),
                    )  # fmt: skip
                return True
        if isinstance(one, Branch) and isinstance(other, Branch):
            # Two conditions that may have to do with each other: nothing is certain.
            return False
        if isinstance(one, Branch) and self._parted(one, seen_first, seen_second):
            assert first is not None
            for arm in (one.then, one.otherwise):
                decision = Decision(one.place, arm is one.then, one.condition)
                self._compare(
                    first.into(arm, "block"), second,
                    {**seen_first, id(one.place.node): decision}, dict(seen_second),
                )  # fmt: skip
            return True
        if isinstance(other, Branch) and self._parted(other, seen_second, seen_first):
            assert second is not None
            for arm in (other.then, other.otherwise):
                decision = Decision(other.place, arm is other.then, other.condition)
                self._compare(
                    first, second.into(arm, "block"),
                    dict(seen_first), {**seen_second, id(other.place.node): decision},
                )  # fmt: skip
            return True
        return False

    def _parted(self, branch: Branch, mine: Seen, theirs: Seen) -> bool:
        """Whether the other rank has passed the branch, or was led around it by its rank."""
        if id(branch.place.node) in theirs:
            return True
        return any(
            isinstance(decision, Decision)
            and not _same_way(decision, theirs.get(key))
            and _contains(decision.place.node, branch.place)
            for key, decision in mine.items()
        )

    def _go_on_behind(self, first: Frames | None, second: Frames | None) -> bool:
        """A branch that each rank decides for itself is judged on its own; both go on behind it."""
        assert first is not None
        assert second is not None
        self._compare(first.following(), second.following(), {}, {})
        return True

    def _alike(self, one: Branch | Loop, other: Branch | Loop) -> bool:
        """Whether two conditions are written the same and mean the same on all ranks."""
        if isinstance(one, Branch) and isinstance(other, Branch):
            nodes = [getattr(item.place.node, "test", item.place.node) for item in (one, other)]
            uniform = not one.condition.sameness.varies and not other.condition.sameness.varies
        else:
            nodes = [
                getattr(item.place.node, "iter", getattr(item.place.node, "test", item.place.node))
                for item in (one, other)
            ]
            uniform = True
        return uniform and ast.dump(nodes[0]) == ast.dump(nodes[1])

    def _compare_exits(self, mine: Loop, theirs: Loop, ranks: tuple[int, int]) -> None:
        """A loop that only one rank leaves, because of what only it looks at."""
        event = next(
            (item for item in events_in(theirs.body, certain=True) if not self._skipped(item)), None
        )
        if event is None or mine.joined:
            return
        there = {id(item.place.node) for item in _exits_of(theirs.body)}
        for exit_ in _exits_of(mine.body):
            if id(exit_.place.node) in there:
                continue
            for item in _all_items(mine.body):
                if isinstance(item, Decision) and item.condition.sameness.varies:
                    if _contains(item.place.node, exit_.place):
                        self.found.append(
                            Parting(
                                event, ranks[1], None, ranks[0], item.place, item.condition, exit_
                            )
                        )
                        return

    def _uneven_loops(self, one: Loop, other: Loop) -> None:
        longer, ranks = (one, self.ranks)
        if isinstance(one.count, int) and isinstance(other.count, int):
            if not isinstance(one.count, Sameness) and one.count < other.count:
                longer, ranks = other, (self.ranks[1], self.ranks[0])
        event = next(events_in(longer.body, certain=True), None)
        if event is not None and not longer.joined:
            self.found.append(Parting(event, ranks[0], None, ranks[1], longer.place, longer.source))

    def _loop_against(
        self, one: Item | None, other: Item | None,
        seen_first: Seen, seen_second: Seen,
    ) -> None:  # fmt: skip
        """A loop where the other rank has none: certain when the loop certainly runs and its body certainly waits."""
        loop, rest, ranks = (
            (one, other, self.ranks)
            if isinstance(one, Loop)
            else (other, one, (self.ranks[1], self.ranks[0]))
        )
        assert isinstance(loop, Loop)
        seen = (seen_first, seen_second) if loop is one else (seen_second, seen_first)
        event = next(events_in(loop.body, certain=True), None)
        if event is None or loop.joined or self._skipped(event):
            raise Undecided
        decision = _decision_around(loop.body, event) or self._separation(event, *seen)
        if decision is None or not (_inside(event, decision) or _EXIT in seen[1]):
            raise Undecided
        if rest is None or isinstance(rest, (Event, Exit)):
            what = rest if isinstance(rest, (Event, Exit)) else None
            if isinstance(what, Event) and what.operation.word == event.operation.word:
                raise Undecided
            self.found.append(
                Parting(event, ranks[0], what, ranks[1], decision.place, decision.condition)
            )

    def _guarded(self, item: Item | None, mine: Seen, theirs: Seen) -> bool:
        """Whether a collective stands in a branch that the other rank does not take."""
        return isinstance(item, Event) and _inside(item, self._separation(item, mine, theirs))

    # -- reporting

    def _separation(self, event: Item | None, mine: Seen, theirs: Seen) -> Decision | None:
        """The branch at which the two ranks went different ways before one of them came to a collective.

        The outermost one around the collective; else the one in which the other rank left; else the last.
        """
        differing = [
            decision
            for key, decision in mine.items()
            if isinstance(decision, Decision) and not _same_way(decision, theirs.get(key))
        ]
        for decision in differing:
            if isinstance(event, Event) and _inside(event, decision):
                return decision
        exit_ = theirs.get(_EXIT)
        others = [
            decision
            for key, decision in theirs.items()
            if isinstance(decision, Decision) and not _same_way(decision, mine.get(key))
        ]
        for decision in others:
            if isinstance(exit_, Exit) and _contains(decision.place.node, exit_.place):
                return decision
        return differing[-1] if differing else others[-1] if others else None

    def _report(
        self, one: Item | None, other: Item | None, first: Frames | None, second: Frames | None,
        seen_first: Seen, seen_second: Seen,
    ) -> tuple[Frames | None, Frames | None]:  # fmt: skip
        """Report a mismatch, and say where to go on: behind the collective that only one rank performs."""
        a, b = self.ranks
        mine = one if isinstance(one, Event) else None
        theirs = other if isinstance(other, Event) else None
        if mine is not None and theirs is not None:
            guarded_mine = self._guarded(mine, seen_first, seen_second)
            if not guarded_mine and self._guarded(theirs, seen_second, seen_first):
                mine, theirs = None, theirs
                one_waits = False
            else:
                one_waits = True
        else:
            one_waits = mine is not None
        if one_waits:
            assert isinstance(one, Event)
            decision = self._separation(one, seen_first, seen_second)
            instead = other if isinstance(other, (Event, Exit)) else None
            parting = Parting(one, a, instead, b, None, None)
            first = first.following() if first is not None else None
        else:
            assert isinstance(other, Event)
            decision = self._separation(other, seen_second, seen_first)
            instead = one if isinstance(one, (Event, Exit)) else None
            parting = Parting(other, b, instead, a, None, None)
            second = second.following() if second is not None else None
        if decision is None:
            raise Undecided
        parting.branch, parting.condition = decision.place, decision.condition
        left = (seen_second if one_waits else seen_first).get(_LEFT)
        waiting = first if one_waits else second
        if isinstance(left, Exit) and waiting is not None and _in_loop(waiting):
            parting.left = left
        self.found.append(parting)
        if isinstance(one, Exit) or isinstance(other, Exit) or len(self.found) > 4:
            raise Undecided
        return first, second


def _leave(frames: Frames, item: Exit) -> Frames | None:
    """Where a walk goes on after break, continue or return."""
    kinds = ("call", "root") if item.kind == "return" else ("loop",)
    current: Frames | None = frames
    while current is not None and current.kind not in kinds:
        current = current.outer
    if current is None:
        return None
    if current.kind == "root":
        return Frames(current.items, len(current.items), "root", None)
    return current.outer


def _in_loop(frames: Frames) -> bool:
    """Whether a walk stands in a loop of the function it is in."""
    current: Frames | None = frames
    while current is not None and current.kind != "call":
        if current.kind == "loop":
            return True
        current = current.outer
    return False


def _items_of(item: Branch | Loop) -> list[Item]:
    return item.body if isinstance(item, Loop) else [*item.then, *item.otherwise]


def _is_abort(item: Item | None) -> bool:
    return isinstance(item, Exit) and item.kind == "raise"


def _inside(event: Event, decision: Decision | None) -> bool:
    """Whether the collective stands in the branch itself."""
    return decision is not None and _contains(decision.place.node, event.place)


def _all_items(items: list[Item]) -> Iterator[Item]:
    for item in items:
        yield item
        if isinstance(item, Branch):
            yield from _all_items([*item.then, *item.otherwise])


def _decision_around(items: list[Item], event: Event) -> Decision | None:
    """The branch inside a loop that leads a rank to a collective."""
    for item in items:
        if isinstance(item, Decision) and _contains(item.place.node, event.place):
            return item
        inner = item.body if isinstance(item, (Loop, Call)) else []
        if isinstance(item, Branch):
            inner = [*item.then, *item.otherwise]
        found = _decision_around(inner, event)
        if found is not None:
            return found
    return None


def _exits_of(items: list[Item]) -> Iterator[Exit]:
    """Exits out of the loop whose body this is, in branches too."""
    for item in items:
        if isinstance(item, Exit) and item.kind in ("break", "return"):
            yield item
        elif isinstance(item, Branch):
            yield from _exits_of([*item.then, *item.otherwise])


def _contains(node: ast.AST, place: Place) -> bool:
    """Whether a place, or a call on the way to it, lies inside a node."""
    wanted = {id(place.node), *(id(call) for call, _ in place.calls)}
    return any(id(item) in wanted for item in ast.walk(node))


def _same_way(decision: Decision, other: Decision | Passed | Exit | None) -> bool:
    return isinstance(other, Decision) and other.taken == decision.taken
