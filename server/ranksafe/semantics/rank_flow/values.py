"""What an expression may be on one rank, and whether the other ranks have the same."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module
    from ranksafe.semantics.rank_flow.traces import Failure


class Sameness(IntEnum):
    """Whether all ranks have the same value; the larger one wins where values are combined."""

    SAME = 0
    UNKNOWN = 1
    """Never a reason to report anything."""
    DATA = 2
    """Differs because each rank sees other data, another clock, or other random numbers."""
    RANK = 3
    """Computed from the rank."""

    @property
    def varies(self) -> bool:
        """Whether ranks are known to differ."""
        return self >= Sameness.DATA


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value that differs between ranks comes from."""

    text: str
    """As written: ``dist.get_rank()``, ``batch``."""
    node: ast.AST
    module: Module
    sameness: Sameness
    amount: bool = False
    """Whether the value is a number that each rank has chosen for itself, not one that is computed from the rank."""


class OfFile(Enum):
    """When a value counts as true that depends on whether a file is there."""

    THERE = "there"
    MISSING = "missing"
    EITHER = "either"
    """That is not known."""


class Share(Enum):
    """How data is cut into parts for the ranks."""

    EVEN = "even"
    """Computed with ``//`` or ``%`` of the world size: all parts are as long."""
    ROUNDED = "rounded"
    """Rounded up: as many numbers for each rank, but what is cut with them may end before the last part does."""
    UNEVEN = "uneven"
    """Cut off at the end of the data, or different on the last rank: some part is shorter."""


@dataclass(frozen=True, slots=True)
class Known:
    """A constant on the rank that is looked at: the rank itself, a comparison with it, a literal."""

    constant: Any
    origin: Origin | None = field(default=None, compare=False)
    instead_of: ast.AST | None = field(default=None, compare=False)
    """For None: the branch in which other ranks assign something else."""

    @property
    def sameness(self) -> Sameness:
        """RANK when computed from the rank."""
        return Sameness.SAME if self.origin is None else self.origin.sameness


@dataclass(frozen=True, slots=True)
class Many:
    """A list or tuple of known length."""

    items: tuple[Value, ...]
    origin: Origin | None = field(default=None, compare=False)
    length: Sameness = Sameness.UNKNOWN
    """For the share of a rank: whether the other ranks' shares are as long."""

    @property
    def sameness(self) -> Sameness:
        """The least same of the items."""
        own = Sameness.SAME if self.origin is None else self.origin.sameness
        return max((item.sameness for item in self.items), default=own)


@dataclass(frozen=True, slots=True)
class Unknown:
    """Some value."""

    sameness: Sameness = Sameness.UNKNOWN
    origin: Origin | None = field(default=None, compare=False)
    length: Sameness = Sameness.UNKNOWN
    """Whether iterating it takes the same number of steps on all ranks."""
    shape: Sameness | tuple[int, ...] = Sameness.UNKNOWN
    """Whether, as a tensor, it has the same shape on all ranks; the shape itself where it is known."""
    made_by: Thing | None = field(default=None, compare=False)
    """The wrapped model whose forward it went through."""
    complete_on: int | None = None
    """The only rank that has the complete value, after ``dist.reduce``."""
    decides: bool = False
    """Whether it is, or was made of, the outcome of a test: then its truth differs where it does."""
    dtype: str = ""
    """Element type of a tensor, where its creation says it."""
    share: Share | None = None
    """For numbers and sequences that cut data into parts: how."""
    each: Value | None = field(default=None, compare=False)
    """What each step of a loop over it gives, where that is known better."""
    steps: int | None = None
    """How many steps iterating it takes on this rank, where that is known."""
    groups: tuple[tuple[Any, Thing], ...] | None = field(default=None, compare=False)
    """For a dictionary of groups: its keys and groups. For one of them, it is not known which: those it may be."""
    own_item: bool = False
    """Whether it is one of the items that this rank alone has: how large it is nobody else knows."""
    entries: tuple[tuple[Any, Value], ...] | None = field(default=None, compare=False)
    """For a dictionary whose keys are known: what it holds."""
    agreed: bool = False
    """Whether it was made of the result of a collective: ranks that test it decide together."""
    none_apart: bool = False
    """Whether it depends on the data of a rank that the value is None."""
    there: Origin | None = field(default=None, compare=False)
    """Why it is not None here: on other ranks it is."""
    raises: tuple[Failure, ...] = ()
    """Of a ``Future``: what asking for its result may raise on this rank alone."""
    file: OfFile | None = None
    """Of the answer of the file system, which one rank may get before a file is written and another one afterwards."""


@dataclass(frozen=True, slots=True, eq=False)
class Thing:
    """An object with an identity; its attributes lie in the interpreter's heap."""

    kind: str
    """``accelerator``, ``wrapped`` (DDP, FSDP, prepared), ``group``, ``loader``, ``object`` (of a class of the
    project), ``class``, ``function``, ``work``, ``module``."""
    type: str = ""
    """Canonical name of the class."""
    node: ast.AST | None = None
    module: Module | None = None
    detail: Any = None
    origin: Origin | None = None
    length: Sameness = Sameness.UNKNOWN
    """For what can be iterated: whether it takes the same number of steps on all ranks."""
    steps: int | None = None
    """For what can be iterated: how many steps it takes on this rank, where that is known."""

    @property
    def sameness(self) -> Sameness:
        """Objects as such do not differ; what they hold may."""
        return Sameness.SAME


@dataclass(frozen=True, slots=True)
class Missing:
    """A local variable that this rank has not assigned."""

    name: str
    branch: ast.AST | None = field(default=None, compare=False)
    """The condition under which other ranks assign it."""
    origin: Origin | None = field(default=None, compare=False)

    @property
    def sameness(self) -> Sameness:
        """Only some ranks have it."""
        return Sameness.RANK


Value = Known | Many | Unknown | Thing | Missing

NOTHING_KNOWN = Unknown()
SAME = Unknown(Sameness.SAME, length=Sameness.SAME, shape=Sameness.SAME)


def length_of(value: Value) -> Sameness | int:
    """How often a loop over the value runs: the number where it is known, else whether ranks agree."""
    if isinstance(value, Many):
        return len(value.items)
    if isinstance(value, Known) and isinstance(value.constant, (str, tuple, range)):
        return len(value.constant)
    if isinstance(value, (Unknown, Thing)) and value.steps is not None:
        return value.steps
    if isinstance(value, Unknown) and isinstance(value.shape, tuple) and value.shape:
        return value.shape[0]
    return value.length if isinstance(value, (Unknown, Thing)) else Sameness.UNKNOWN


def evenness(value: Value) -> Sameness:
    """Whether a loop over the value takes the same number of steps on all ranks, also where this rank's is known."""
    if isinstance(value, (Many, Unknown, Thing)):
        return value.length
    return Sameness.SAME if isinstance(value, Known) and value.origin is None else Sameness.UNKNOWN


def is_agreed(*values: Value) -> bool:
    """Whether one of the values comes out of a collective."""
    return any(
        (isinstance(value, Unknown) and value.agreed)
        or (isinstance(value, Many) and is_agreed(*value.items))
        for value in values
    )


def part_of(value: Unknown) -> Unknown:
    """A part of a value: how many steps the whole takes says nothing of it."""
    return replace(value, length=Sameness.UNKNOWN, steps=None, each=None, entries=None)


def made_by(*values: Value) -> Thing | None:
    """The wrapped model that one of the values went through."""
    for value in values:
        if isinstance(value, Unknown) and value.made_by is not None:
            return value.made_by
        if isinstance(value, Many) and (found := made_by(*value.items)) is not None:
            return found
    return None


def combined(*values: Value) -> Unknown:
    """What an operation makes of values, when all that is known is what went into it."""
    sameness = max((value.sameness for value in values), default=Sameness.SAME)
    origin = origin_of(*values)
    complete_on = None
    for value in values:
        if isinstance(value, Unknown) and value.complete_on is not None:
            complete_on = value.complete_on
        if isinstance(value, Unknown) and value.sameness is Sameness.DATA < sameness:
            # Data that the rank scales, shifts or indexes is data still.
            sameness, origin = Sameness.DATA, value.origin
    return Unknown(
        sameness,
        origin,
        made_by=made_by(*values),
        complete_on=complete_on,
        decides=any(isinstance(value, Unknown) and value.decides for value in values),
        share=_share(values),
        agreed=is_agreed(*values),
        file=of_file(*values),
    )


def of_file(*values: Value) -> OfFile | None:
    """How what is made of values depends on a file."""
    found = {value.file for value in values if isinstance(value, Unknown)} - {None}
    return OfFile.EITHER if len(found) > 1 else next(iter(found), None)


def _share(values: tuple[Value, ...]) -> Share | None:
    shares = {value.share for value in values if isinstance(value, Unknown)}
    return next((share for share in reversed(Share) if share in shares), None)


def elementwise(*values: Value) -> Unknown:
    """What an operation makes of values whose shape it keeps."""
    lengths = [value.length for value in values if isinstance(value, Unknown)]
    length = max(lengths, default=Sameness.UNKNOWN)
    return replace(
        combined(*values),
        shape=_shape(values),
        length=length if length.varies else Sameness.UNKNOWN,
    )


def _shape(values: tuple[Value, ...]) -> Sameness | tuple[int, ...]:
    shapes = [value.shape for value in values if isinstance(value, Unknown)]
    if len(shapes) == 1:
        return shapes[0]
    levels = [shape if isinstance(shape, Sameness) else Sameness.SAME for shape in shapes]
    return max(levels, default=Sameness.UNKNOWN)


def origin_of(*values: Value) -> Origin | None:
    """The origin of the value that differs most between ranks."""
    found: Origin | None = None
    for value in values:
        origin = value.origin
        if isinstance(value, Many) and origin is None:
            origin = origin_of(*value.items)
        if origin is not None and (found is None or origin.sameness > found.sameness):
            found = origin
    return found


def truth_of(value: Value) -> bool | None:
    """Whether a value counts as true on this rank; None when that is not known."""
    if isinstance(value, Known):
        return bool(value.constant)
    if isinstance(value, Many):
        return bool(value.items)
    return None
