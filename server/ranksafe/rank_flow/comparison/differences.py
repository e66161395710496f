"""What may differ between two ranks, and whether two calls of one collective fit together."""

from __future__ import annotations

from dataclasses import dataclass

from ranksafe.rank_flow.traces import Event, Exit, Place
from ranksafe.rank_flow.values import Value, whole_number


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
    uneven: bool = False
    """`branch` is a loop over data, of which the waiting rank has more."""


@dataclass(slots=True)
class Mismatch:
    """Both ranks are in the same collective, but not with arguments that fit."""

    what: str
    """``root``, ``shape``, ``list`` or ``members``."""
    event: Event


Difference = Parting | Mismatch


def mismatch(one: Event, other: Event) -> Mismatch | None:
    """The first argument in which two calls of one collective do not fit together."""
    if one.members is not None and other.members is not None and one.members != other.members:
        # Groups of one rank each: nobody has to find another member.
        if max(len(one.members), len(other.members)) > 1:
            return Mismatch("members", one)
    roots = [whole_number(item.root) for item in (one, other)]
    if None not in roots and roots[0] != roots[1]:
        return Mismatch("root", one)
    if isinstance(one.shape, tuple) and isinstance(other.shape, tuple):
        if one.shape != other.shape:
            listed = "object" in one.operation.word
            return Mismatch("list" if listed else "shape", one)
    return None
