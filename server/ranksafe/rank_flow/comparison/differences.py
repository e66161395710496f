"""What may differ between two ranks."""

from __future__ import annotations

from dataclasses import dataclass

from ranksafe.rank_flow.traces import Event, Exit, Place
from ranksafe.rank_flow.values import Value


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
    """``root``, ``shape``, ``dtype``, ``list`` or ``members``."""
    event: Event


Difference = Parting | Mismatch
