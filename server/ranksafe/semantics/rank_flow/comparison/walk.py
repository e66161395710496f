"""The way through one rank's trace: into calls and loops, after exits, past what says nothing."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import dataclass

from ranksafe.semantics.rank_flow.traces import (
    Branch,
    Call,
    Decision,
    Event,
    Exit,
    Failure,
    Item,
    Loop,
    Passed,
    Place,
    matters,
    matters_behind,
)
from ranksafe.semantics.rank_flow.values import Sameness

LEFT, EXIT = 0, 1
"""Keys, among the decisions that were passed, of the last exit out of a loop and of the last exit at all."""
Seen = dict[int, Decision | Passed | Exit]
"""What a walk has passed, by the node's id."""


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

    def position(self) -> Hashable:
        """Equal for walks that stand at the same place of the same trace."""
        outer = None if self.outer is None else self.outer.position()
        first = id(self.items[0]) if self.items else 0
        # At the end of a level, the walk goes on behind it: how it got there does not matter.
        if self.index >= len(self.items) and self.kind in ("block", "call", "loop"):
            return outer
        return (first, self.index, self.kind, outer)

    def into(self, items: list[Item], kind: str, level: Item | None = None) -> Frames:
        """Inside an item; afterwards the walk goes on behind it."""
        return Frames(tuple(items), 0, kind, self.following(), level)


def next_item(
    frames: Frames | None, seen: Seen, ranks: tuple[int, int]
) -> tuple[Frames | None, Item | None]:
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
        if isinstance(item, Failure):
            frames = frames.following()
        elif isinstance(item, (Decision, Passed)):
            seen[id(item.place.node)] = item
            frames = frames.following()
        elif isinstance(item, Call):
            frames = frames.into(item.body, "call")
        elif isinstance(item, Exit):
            if item.kind in ("exit", "raise"):
                return frames, item
            seen[EXIT] = item
            if in_loop(frames):
                seen[LEFT] = item
            frames = _leave(frames, item)
        elif (isinstance(item, Event) and skipped(item, ranks)) or (
            isinstance(item, Branch) and not matters([*item.then, *item.otherwise])
        ):
            frames = frames.following()
        elif isinstance(item, Loop) and not matters_behind(item.body):
            # What a single step decides was decided here.
            once = runs_once(item)
            frames = frames.into(item.body, "loop", item) if once else frames.following()
        else:
            return frames, item
    return None, None


def taken(seen: Seen) -> Hashable:
    """What a walk has passed, to compare it with another walk's."""
    return frozenset(
        (key, item.taken if isinstance(item, Decision) else id(item.place.node))
        for key, item in seen.items()
    )


def skipped(event: Event, ranks: tuple[int, int]) -> bool:
    """Collectives of groups that are not the business of both ranks, and point-to-point ones."""
    if event.operation.kind == "point-to-point":
        return True
    if not event.group_known:
        return True
    if event.group is None:
        return False
    members = event.group.detail
    return not all(rank in members for rank in ranks)


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


def runs_once(item: Item | None) -> bool:
    """Whether an item is one step of a loop that was followed step by step, or a loop with one step."""
    return isinstance(item, Loop) and not isinstance(item.count, Sameness) and item.count == 1


def into_step(
    item: Item | None, other: Item | None, frames: Frames | None, theirs: Seen
) -> Frames | None:
    """Inside a single step that the other rank is not at, where that says more than the step as a whole; else None.

    `theirs`: what the other rank has passed. Where it has left the same loop, its collectives and those of the steps
    that are left do not belong to each other.
    """
    if not isinstance(item, Loop) or not runs_once(item) or frames is None:
        return None
    left = theirs.get(LEFT)
    if isinstance(left, Exit) and contains(item.place.node, left.place):
        return None
    if other is not None and (
        not isinstance(other, (Event, Loop)) or other.place.node is item.place.node
    ):
        return None
    return frames.into(item.body, "loop", item)


def contains(node: ast.AST, place: Place) -> bool:
    """Whether a place, or a call on the way to it, lies inside a node."""
    wanted = {id(place.node), *(id(call) for call, _ in place.calls)}
    return any(id(item) in wanted for item in ast.walk(node))


def in_loop(frames: Frames) -> bool:
    """Whether a walk stands in a loop of the function it is in."""
    current: Frames | None = frames
    while current is not None and current.kind != "call":
        if current.kind == "loop":
            return True
        current = current.outer
    return False
