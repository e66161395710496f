"""The way through one rank's trace: into calls and loops, after exits, past what says nothing."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from ranksafe.rank_flow.traces import (
    Branch,
    Call,
    Decision,
    Event,
    Exit,
    Item,
    Loop,
    Passed,
    matters,
    matters_behind,
)

LEFT, EXIT = 0, 1
"""Keys, among the decisions that were passed, of the last exit out of a loop and of the last exit at all."""
Seen = dict[int, Decision | Passed | Exit]
"""What a walk has passed, by the node's id."""


class Undecided(Exception):
    """The comparison cannot go on without guessing."""


@dataclass(slots=True)
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


@dataclass(slots=True)
class Side:
    """One rank's walk through its trace."""

    rank: int
    frames: Frames | None
    seen: Seen
    """What it has passed since the ranks last met."""
    item: Item | None = None
    """What it comes to next."""

    @classmethod
    def at_start(cls, rank: int, items: list[Item]) -> Side:
        """Before the first item."""
        return cls(rank, Frames(tuple(items), 0, "root", None), {})

    def advance(self, ranks: tuple[int, int]) -> None:
        """Go to the next item that matters to both ranks."""
        self.frames, self.item = next_item(self.frames, self.seen, ranks)

    def step(self) -> None:
        """Go behind the item."""
        self.frames = None if self.frames is None else self.frames.following()

    def pass_by(self) -> None:
        """Go behind an item at which the ranks have met."""
        self.step()
        self.seen = {}

    def copy(self) -> Side:
        """Another walk that stands here and knows as much."""
        return Side(self.rank, self.frames, dict(self.seen), self.item)

    def inside(
        self, items: list[Item], kind: str, level: Item | None = None, *, seen: Seen | None = None
    ) -> Side:
        """A walk through the inside of the item, then behind it."""
        assert self.frames is not None
        return Side(self.rank, self.frames.into(items, kind, level), dict(seen or {}))


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
        if isinstance(item, (Decision, Passed)):
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
        elif (
            (isinstance(item, Event) and skipped(item, ranks))
            or (isinstance(item, Branch) and not matters([*item.then, *item.otherwise]))
            or (isinstance(item, Loop) and not matters_behind(item.body))
        ):
            frames = frames.following()
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


def in_loop(frames: Frames) -> bool:
    """Whether a walk stands in a loop of the function it is in."""
    current: Frames | None = frames
    while current is not None and current.kind != "call":
        if current.kind == "loop":
            return True
        current = current.outer
    return False
