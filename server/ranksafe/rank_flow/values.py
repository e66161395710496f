"""What an expression may be on one rank, and whether the other ranks have the same.

Values are never changed once they are made (they are not frozen because making a frozen one takes three times as long).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, fields
from enum import IntEnum
from operator import attrgetter
from typing import Any, Final

from ranksafe.semantics.module import Module

LONGEST = 64
"""Collections with more items are not followed item by item."""
_MOST_ITEMS = 1_000
"""Of a list and the lists in it together; of larger ones only that is known how many items they have."""
_LONGEST_TEXT = 4_096
"""Characters, or bytes."""
_LARGEST_NUMBER = 10**12


class Varies(IntEnum):
    """Whether all ranks have the same value; the larger one wins where values are combined."""

    NO = 0
    PERHAPS = 1
    """Never a reason to report anything."""
    BY_DATA = 2
    """Differs because each rank sees other data, another clock, or other random numbers."""
    BY_RANK = 3
    """Computed from the rank."""

    @property
    def certain(self) -> bool:
        """Whether ranks are known to differ."""
        return self >= Varies.BY_DATA


@dataclass(slots=True, unsafe_hash=True)
class Origin:
    """Where a value that differs between ranks comes from."""

    text: str
    """As written: ``dist.get_rank()``, ``batch``."""
    node: ast.AST
    module: Module
    varies: Varies


class Share(IntEnum):
    """How data is cut into parts for the ranks; the larger one wins where parts are combined."""

    EVEN = 0
    """Computed with ``//`` or ``%`` of the world size: all parts are as long."""
    ROUNDED = 1
    """Rounded up: some part is shorter once it is cut off at the end of the data."""
    UNEVEN = 2
    """Cut off at the end, or different on the last rank: some part is shorter."""


@dataclass(slots=True, unsafe_hash=True)
class Constant:
    """A constant on the rank that is looked at: the rank itself, a comparison with it, a literal."""

    constant: Any
    origin: Origin | None = field(default=None, compare=False)
    instead_of: ast.AST | None = field(default=None, compare=False)
    """For None: the branch in which other ranks assign something else."""

    @property
    def varies(self) -> Varies:
        """RANK when computed from the rank."""
        return Varies.NO if self.origin is None else self.origin.varies


@dataclass(slots=True, unsafe_hash=True)
class Sequence:
    """A list or tuple of known length."""

    items: tuple[Value, ...]
    origin: Origin | None = field(default=None, compare=False)
    length: Varies = Varies.PERHAPS
    """For the share of a rank: whether the other ranks' shares are as long."""
    summary: Abstract | None = field(default=None, compare=False, repr=False)
    """What is known of the items together, once somebody has asked."""
    size: int = field(default=0, compare=False, repr=False)
    """How many items it has, those of lists in it included: 60 lists in each other, each holding the next twice, are a
    trillion."""

    @property
    def varies(self) -> Varies:
        """The least same of the items."""
        if not self.items:
            return Varies.NO if self.origin is None else self.origin.varies
        return _summary(self).varies


@dataclass(slots=True, unsafe_hash=True)
class Abstract:
    """Some value."""

    varies: Varies = Varies.PERHAPS
    origin: Origin | None = field(default=None, compare=False)
    length: Varies = Varies.PERHAPS
    """Whether iterating it takes the same number of steps on all ranks."""
    shape: Varies | tuple[int, ...] = Varies.PERHAPS
    """Whether, as a tensor, it has the same shape on all ranks; the shape itself where it is known."""
    made_by: Object | None = field(default=None, compare=False)
    """The wrapped model whose forward it went through."""
    complete_on: int | None = None
    """The only rank that has the complete value, after ``dist.reduce``."""
    decides: bool = False
    """Whether it is, or was made of, the outcome of a test: then its truth differs where it does."""
    share: Share | None = None
    """For numbers and sequences that cut data into parts: how."""
    each: Value | None = field(default=None, compare=False)
    """What each step of a loop over it gives, where that is known better."""
    steps: int | None = None
    """How many steps iterating it takes on this rank, where that is known."""
    groups: tuple[tuple[Any, Object], ...] | None = field(default=None, compare=False)
    """For a dictionary of groups: its keys and groups. For one of them, it is not known which: those it may be."""
    own_item: bool = False
    """Whether it is one of the items that this rank alone has: how large it is nobody else knows."""
    agreed: bool = False
    """Whether it was made of the result of a collective: ranks that test it decide together."""
    none_somewhere: bool = False
    """Whether it is None on some ranks and something else on others, as their data say."""
    elsewhere: Constant | None = field(default=None, compare=False)
    """What it is on other ranks, of which the rank itself says so: ``x and rank == 0``."""
    entries: Entries | None = None
    """For a dictionary: what lies under single keys, and under all others. It says itself what they have in common."""

    def changed(self, **changes: Any) -> Abstract:
        """What ``dataclasses.replace`` gives, in a quarter of its time; entries, and what it is
        elsewhere, are those of the value as it was."""
        other = Abstract(*_contents(self))
        other.elsewhere = other.entries = None
        for name, content in changes.items():
            setattr(other, name, content)
        return other


_contents: Final = attrgetter(*Abstract.__slots__)


@dataclass(slots=True, unsafe_hash=True)
class Entries:
    """The entries of a dictionary, none of which has entries itself."""

    known: tuple[tuple[str, Abstract], ...]
    """By key, in the order of the keys."""
    others: Abstract

    def at(self, key: str) -> Abstract:
        """What lies under a key."""
        return next((entry for name, entry in self.known if name == key), self.others)


@dataclass(slots=True, eq=False)
class Object:
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
    length: Varies = Varies.PERHAPS
    """For what can be iterated: whether it takes the same number of steps on all ranks."""
    steps: int | None = None
    """For what can be iterated: how many steps it takes on this rank, where that is known."""

    @property
    def varies(self) -> Varies:
        """Objects as such do not differ; what they hold may."""
        return Varies.NO


@dataclass(slots=True, unsafe_hash=True)
class Unassigned:
    """A local variable that this rank has not assigned."""

    name: str
    branch: ast.AST | None = field(default=None, compare=False)
    """The condition under which other ranks assign it."""
    origin: Origin | None = field(default=None, compare=False)

    @property
    def varies(self) -> Varies:
        """Only some ranks have it."""
        return Varies.BY_RANK


Value = Constant | Sequence | Abstract | Object | Unassigned

NOTHING_KNOWN = Abstract()
_compared: Final = attrgetter(*(item.name for item in fields(Abstract) if item.compare))
_UNKNOWN: Final = _compared(NOTHING_KNOWN)
_NOTHING_MADE = Abstract(Varies.NO)
SAME = Abstract(Varies.NO, length=Varies.NO, shape=Varies.NO)


def length_of(value: Value) -> Varies | int:
    """How often a loop over the value runs: the number where it is known, else whether ranks agree."""
    if value.__class__ is Abstract:
        if value.steps is not None:
            return value.steps
        shape = value.shape
        return shape[0] if shape.__class__ is tuple and shape else value.length
    if isinstance(value, Sequence):
        return len(value.items)
    if isinstance(value, Constant) and isinstance(value.constant, (str, tuple, range)):
        return len(value.constant)
    if isinstance(value, Object):
        return value.length if value.steps is None else value.steps
    return Varies.PERHAPS


def evenness(value: Value) -> Varies:
    """Whether a loop over the value takes the same number of steps on all ranks, also where this rank's is known."""
    if isinstance(value, (Sequence, Abstract, Object)):
        return value.length
    return Varies.NO if isinstance(value, Constant) and value.origin is None else Varies.PERHAPS


def is_agreed(*values: Value) -> bool:
    """Whether one of the values comes out of a collective."""
    return any(_summary(value).agreed for value in values)


def part_of(value: Abstract) -> Abstract:
    """A part of a value: how many steps the whole takes says nothing of it."""
    return value.changed(length=Varies.PERHAPS, steps=None, each=None)


def made_by(*values: Value) -> Object | None:
    """The wrapped model that one of the values went through."""
    return next((made for value in values if (made := _summary(value).made_by) is not None), None)


def _summary(value: Value) -> Abstract:
    """What is known of a value as a whole; of a sequence computed once."""
    if value.__class__ is Abstract:
        return value
    if value.__class__ is Sequence:
        if value.summary is None:
            value.summary = combined(*value.items)
        return value.summary
    return _NOTHING_MADE


def combined(*values: Value) -> Abstract:
    """What an operation makes of values, when all that is known is what went into it."""
    varies, origin, made, complete_on = Varies.NO, None, None, None
    decides = agreed = False
    share: Share | None = None
    for value in values:
        if value.__class__ is Constant:
            own = value.origin
            if own is not None:
                if own.varies > varies:
                    varies = own.varies
                if origin is None or own.varies > origin.varies:
                    origin = own
            continue
        whole = value if value.__class__ is Abstract else _summary(value)
        if value.varies > varies:
            varies = value.varies
        own = value.origin or whole.origin
        if own is not None and (origin is None or own.varies > origin.varies):
            origin = own
        made = made or whole.made_by
        agreed = agreed or whole.agreed
        if whole is value:
            decides = decides or whole.decides
            if whole.complete_on is not None:
                complete_on = whole.complete_on
            if whole.share is not None and (share is None or whole.share > share):
                share = whole.share
    return Abstract(
        varies, origin, made_by=made, complete_on=complete_on, decides=decides, share=share,
        agreed=agreed,
    )  # fmt: skip


def with_entries(whole: Abstract, entries: dict[str, Value], others: Value) -> Abstract:
    """A dictionary of which single entries are known, where they are not too many."""
    if len(entries) > LONGEST:
        return whole.changed()
    known = tuple((key, _entry(value)) for key, value in sorted(entries.items()))
    return whole.changed(entries=Entries(known, _entry(others)))


def with_entry(before: Abstract, key: str, value: Value) -> Abstract:
    """A dictionary after ``before[key] = value``."""
    whole = combined(before, value) if value.varies > before.varies else before
    entries = before.entries
    if entries is None:
        return with_entries(whole, {key: value}, before)
    return with_entries(whole, {**dict(entries.known), key: value}, entries.others)


def entry_at(base: Value, index: Value) -> Abstract | None:
    """``base[index]``; None where it is no dictionary with known entries, or nobody knows which one is meant."""
    if not isinstance(base, Abstract) or base.entries is None:
        return None
    key = text_of(index)
    return None if key is None else base.entries.at(key)


def with_changed_entry(value: Value, before: Value, after: Value) -> Value:
    """A dictionary in which another value stands where one stood: that very one, not one that is equal to it."""
    entries = value.entries if isinstance(value, Abstract) else None
    if entries is None or all(entry is not before for _, entry in entries.known):
        return value
    assert isinstance(value, Abstract)
    known = {key: after if entry is before else entry for key, entry in entries.known}
    return with_entries(value, known, entries.others)


def _entry(value: Value) -> Abstract:
    if not isinstance(value, Abstract):
        return combined(value)
    plain = value.entries is None and value.each is None and value.groups is None
    return value if plain else value.changed(each=None, groups=None)


def _joined_entries(first: Value, second: Value, condition: Value | None) -> Entries | None:
    sides = [
        side.entries or Entries((), _entry(side)) if isinstance(side, Abstract) else None
        for side in (first, second)
    ]
    one, other = sides
    if one is None or other is None or not (one.known or other.known):
        return None
    keys = sorted({key for side in (one, other) for key, _ in side.known})
    if len(keys) > LONGEST:
        return None
    known = tuple((key, _entry(joined(one.at(key), other.at(key), condition))) for key in keys)
    return Entries(known, _entry(joined(one.others, other.others, condition)))


def listed(
    items: tuple[Value, ...], origin: Origin | None = None, length: Varies = Varies.PERHAPS
) -> Sequence | Abstract:
    """A list or tuple with these items; where they are too many to look at each, what they have in common."""
    size = len(items) + sum(item.size for item in items if item.__class__ is Sequence)
    if size <= _MOST_ITEMS:
        return Sequence(items, origin, length, size=size)
    found = combined(*items)
    return found.changed(origin=origin or found.origin, length=length, steps=len(items))


def is_small(constant: Any) -> bool:
    """Whether a constant is small enough to be computed with."""
    if isinstance(constant, (str, bytes)):
        return len(constant) <= _LONGEST_TEXT
    if isinstance(constant, int):
        return -_LARGEST_NUMBER <= constant <= _LARGEST_NUMBER
    return not isinstance(constant, tuple) or all(map(is_small, constant))


def elementwise(*values: Value) -> Abstract:
    """What an operation makes of values whose shape it keeps."""
    lengths = [value.length for value in values if isinstance(value, Abstract)]
    length = max(lengths, default=Varies.PERHAPS)
    return combined(*values).changed(
        shape=_shape(values), length=length if length.certain else Varies.PERHAPS
    )


def _shape(values: tuple[Value, ...]) -> Varies | tuple[int, ...]:
    shapes = [value.shape for value in values if isinstance(value, Abstract)]
    if len(shapes) == 1:
        return shapes[0]
    levels = [shape if isinstance(shape, Varies) else Varies.NO for shape in shapes]
    return max(levels, default=Varies.PERHAPS)


def origin_of(*values: Value) -> Origin | None:
    """The origin of the value that differs most between ranks."""
    found: Origin | None = None
    for value in values:
        origin = value.origin
        if isinstance(value, Sequence) and origin is None:
            origin = origin_of(*value.items)
        if origin is not None and (found is None or origin.varies > found.varies):
            found = origin
    return found


def joined(first: Value, second: Value, condition: Value | None = None) -> Value:
    """A value that is one of two, depending on a condition that is not decided."""
    abstract = first.__class__ is Abstract, second.__class__ is Abstract
    if not any(abstract) and first == second:
        return first
    if all(abstract) and _stays_unknown(first, second, condition):
        return Abstract()  # A new one: which of two unknown values it is may still differ.
    if first.__class__ is Unassigned or second.__class__ is Unassigned:
        # Assigned on some paths only: Python itself would complain on the others, on any number of ranks.
        return Abstract()
    both = combined(first, second)
    if first.__class__ is Object or second.__class__ is Object:
        return both.changed(varies=max(both.varies, Varies.PERHAPS))
    same = Varies.NO if condition is None else condition.varies
    origin = both.origin
    if condition is not None and (origin is None or same > both.varies):
        origin = origin_of(condition) or origin
    complete_on = both.complete_on
    if complete_on is None and isinstance(condition, Abstract):
        complete_on = condition.complete_on
    filled = _is_even(first) or _is_even(second)
    length, steps = _joined_length(first, second)
    if filled and length.certain:
        # One path fills the shorter shares up.
        length = Varies.PERHAPS
    none_on_one = same.certain and is_none(first) is not is_none(second)
    return Abstract(
        max(both.varies, same), origin, length=length, shape=both.shape, made_by=both.made_by,
        decides=both.decides or (not all(abstract) and (_is_flag(first) or _is_flag(second))),
        none_somewhere=none_on_one
        or _summary(first).none_somewhere
        or _summary(second).none_somewhere,
        complete_on=complete_on, share=Share.EVEN if filled else None, steps=steps,
        agreed=both.agreed or (condition is not None and is_agreed(condition)),
        entries=_joined_entries(first, second, condition),
    )  # fmt: skip


def _stays_unknown(first: Value, second: Value, condition: Value | None) -> bool:
    """Whether nothing is known of either, and nothing of the condition passes over: nine of ten."""
    if first.varies is not Varies.PERHAPS or first.origin or second.origin:
        return False
    if not _compared(first) == _compared(second) == _UNKNOWN:
        return False
    if made_by(first, second) is not None or condition is None:
        return False
    told = _summary(condition)
    passes = told.origin or condition.origin or told.agreed or told.complete_on is not None
    return not passes and not condition.varies.certain


def _joined_length(first: Value, second: Value) -> tuple[Varies, int | None]:
    """Whether ranks agree how often a loop over one of two values runs, and how often where that is known."""
    one, other = length_of(first), length_of(second)
    if one.__class__ is Varies and other.__class__ is Varies:
        return Varies(max(one, other)), None
    if one.__class__ is other.__class__ and one == other:
        return max(evenness(first), evenness(second)), one
    return Varies.PERHAPS, None


def _is_even(value: Value) -> bool:
    return value.__class__ is Abstract and value.share is Share.EVEN


def _is_flag(value: Value) -> bool:
    return value.__class__ is Constant and isinstance(value.constant, (bool, type(None)))


def is_none(value: Value) -> bool:
    """Whether a value is None on this rank."""
    return value.__class__ is Constant and value.constant is None


def whole_number(value: Value | None) -> int | None:
    """The number that a value is on this rank, where it is known."""
    constant = value.constant if isinstance(value, Constant) else None
    return constant if isinstance(constant, int) else None


def text_of(value: Value | None) -> str | None:
    """The text that a value is on all ranks, where it is known."""
    constant = value.constant if isinstance(value, Constant) and value.origin is None else None
    return constant if isinstance(constant, str) else None


def truth_of(value: Value) -> bool | None:
    """Whether a value counts as true on this rank; None when that is not known."""
    if isinstance(value, Constant):
        return bool(value.constant)
    if isinstance(value, Sequence):
        return bool(value.items)
    return None
