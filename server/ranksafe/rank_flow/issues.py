"""What the analysis finds, in terms that rules make messages of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if (
    TYPE_CHECKING
):  # rules import this module with the whole check, the analysis only where ranks could part
    from ranksafe.rank_flow.traces import Place
    from ranksafe.rank_flow.values import Origin

KEPT = "kept"
"""The name of an issue of asynchronous work where somebody may wait, but after the use."""
CHANGED = "changed"
"""Its name where a tensor that is sent is changed under way: to read it meanwhile is right."""
CUT_OFF = "cut off"
"""Its name where the backend ends a send whose work is gone: under gloo the work holds the buffer."""


class Kind(str, Enum):
    """Which of the rank-flow pitfalls."""

    COLLECTIVE = "collective"
    SHARDED_STATE = "sharded-state"
    WRAPPED_FORWARD = "wrapped-forward"
    LOOP_EXIT = "loop-exit"
    REDUCED_DECISION = "reduced-decision"
    UNEVEN_LOOP = "uneven-loop"
    EVEN_LOOP = "even-loop"
    """No pitfall: what a caller knows of a loop. Never reported."""
    MET = "met"
    """No pitfall: a caller shows that all ranks meet in a collective. Never reported."""
    SHAPES = "shapes"
    OBJECT_LIST = "object-list"
    ONE_RANK_VALUE = "one-rank-value"
    EXCEPTION_HANDLER = "exception-handler"
    OUTSIDE_GROUP = "outside-group"
    GROUP_CONSTRUCTION = "group-construction"
    NEVER_WAITED_FOR = "never-waited-for"
    OTHER_PATH = "other-path"
    ROOT = "root"
    PEER = "peer"


@dataclass(frozen=True, slots=True)
class Issue:
    """One finding of the analysis."""

    kind: Kind
    place: Place
    """Where it is reported."""
    operation: str
    """The collective that ranks wait in, or that is used wrongly."""
    waits: Place | None = None
    """Where the ranks that wait are, when that is not `place`."""
    waiting_rank: int | None = None
    """A rank that waits; None when it depends on the data."""
    other: str = ""
    """What the others do instead: the name of another collective; empty when they do nothing more here."""
    other_place: Place | None = None
    branch: Place | None = None
    """The condition at which ranks separate."""
    origin: Origin | None = None
    """Why the condition differs between ranks."""
    name: str = ""
    """The variable, for values that one rank has."""
