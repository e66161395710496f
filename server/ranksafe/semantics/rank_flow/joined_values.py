"""Values where two paths meet: one of two, depending on a condition that is not decided."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    Known,
    Many,
    Missing,
    OfFile,
    Sameness,
    Share,
    Thing,
    Unknown,
    Value,
    combined,
    evenness,
    is_agreed,
    length_of,
    of_file,
    origin_of,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.traces import Failure


def joined(first: Value, second: Value, condition: Value | None = None) -> Value:
    """A value that is one of two, depending on a condition that is not decided."""
    if first == second and not isinstance(first, Unknown):
        # Equal here; where one of them would be another constant elsewhere, so may be what it is here.
        return second if isinstance(first, Known) and first.origin is None else first
    if isinstance(first, Missing) or isinstance(second, Missing):
        # Assigned on some paths only: Python itself would complain on the others, on any number of ranks.
        return replace(NOTHING_KNOWN)
    if isinstance(first, Thing) and isinstance(second, Thing):
        if first.kind == second.kind == "wrapped" and first.detail == second.detail:
            return first
    if isinstance(first, Many) and isinstance(second, Many):
        if 0 < len(first.items) == len(second.items):
            return _joined_items(first, second, condition)
    both = combined(first, second)
    same = Sameness.SAME
    if not isinstance(first, Unknown) or not isinstance(second, Unknown):
        same = Sameness.SAME if condition is None else condition.sameness
    elif condition is not None:
        same = condition.sameness
    if isinstance(first, Thing) or isinstance(second, Thing):
        return replace(both, sameness=max(both.sameness, Sameness.UNKNOWN))
    sameness = max(both.sameness, same)
    origin = both.origin
    if condition is not None and (origin is None or condition.sameness > both.sameness):
        origin = origin_of(condition) or origin
    complete_on = both.complete_on
    if complete_on is None and isinstance(condition, Unknown):
        complete_on = condition.complete_on
    lengths = [_path_length(first), _path_length(second)]
    length = (
        Sameness.UNKNOWN
        if any(isinstance(item, int) and not isinstance(item, Sameness) for item in lengths)
        else max(Sameness(item) for item in lengths)
    )
    steps = None
    exact = length_of(first)
    if exact == length_of(second) and not isinstance(exact, Sameness):
        steps, length = exact, max(evenness(first), evenness(second))
    filled = any(isinstance(item, Unknown) and item.share is Share.EVEN for item in (first, second))
    if filled and length.varies:
        # One path fills the shorter shares up.
        length = Sameness.UNKNOWN
    if _has_keys_apart(first, second, condition):
        # Ranks then have different keys.
        assert condition is not None
        steps, length, origin = None, condition.sameness, origin_of(condition) or origin
    decides = both.decides or any(
        isinstance(item, Known) and isinstance(item.constant, (bool, type(None)))
        for item in (first, second)
    )
    shape = _joined_shape(first, second)
    if (uneven := _uneven_rows(first, second, condition)) is not None:
        shape = length = uneven
    return Unknown(
        sameness, origin, length=length, decides=decides, shape=shape,
        made_by=both.made_by,
        complete_on=complete_on, share=Share.EVEN if filled else None, steps=steps,
        agreed=both.agreed or is_agreed(*_given(condition)),
        none_apart=_is_none_apart(first, second, condition),
        entries=_joined_entries(first, second, condition),
        each=_joined_each(first, second),
        raises=_joined_failures(first, second),
        file=None if of_file(first, second, *_given(condition)) is None else OfFile.EITHER,
    )  # fmt: skip


def _joined_items(first: Many, second: Many, condition: Value | None) -> Many:
    """One of two tuples, or lists of the same length: each item is one of two."""
    pairs = zip(first.items, second.items, strict=True)
    items = tuple(one if one is other else joined(one, other, condition) for one, other in pairs)
    return Many(items, first.origin or second.origin, max(first.length, second.length))


def _joined_shape(first: Value, second: Value) -> Sameness | tuple[int, ...]:
    """The shape of a tensor that is one of two: what holds of both."""
    if not isinstance(first, Unknown) or not isinstance(second, Unknown):
        return Sameness.UNKNOWN
    if first.shape == second.shape:
        return first.shape
    shapes = [item for item in (first.shape, second.shape) if isinstance(item, Sameness)]
    return min(shapes) if len(shapes) == 2 and min(shapes).varies else Sameness.UNKNOWN


def _uneven_rows(first: Value, second: Value, condition: Value | None) -> Sameness | None:
    """How the rows differ of a tensor that is replaced, on the ranks whose data makes none, by one row or an empty
    tensor; None for others."""
    if not _sameness(condition).varies:
        return None
    for one, other in ((first, second), (second, first)):
        if not isinstance(one, Unknown) or not isinstance(other, Unknown):
            return None
        stands_in = isinstance(other.shape, tuple) and other.shape[:1] in ((0,), (1,))
        if stands_in and one.shape is Sameness.DATA and one.length is Sameness.DATA:
            return Sameness.DATA
    return None


def _is_none_apart(first: Value, second: Value, condition: Value | None) -> bool:
    """Whether it depends on the data of a rank that a value is None."""
    nothing = [isinstance(item, Known) and item.constant is None for item in (first, second)]
    if any(isinstance(item, Unknown) and item.none_apart for item in (first, second)):
        return True
    decided = isinstance(condition, Unknown) and condition.decides
    return nothing[0] is not nothing[1] and decided and _sameness(condition) is Sameness.DATA


def _sameness(condition: Value | None) -> Sameness:
    return Sameness.SAME if condition is None else condition.sameness


def _path_length(value: Value) -> Sameness | int:
    """How long a value is on one of two paths; a dictionary may get keys on either."""
    if isinstance(value, Unknown) and value.entries is not None:
        return value.length
    return length_of(value)


def _has_keys_apart(first: Value, second: Value, condition: Value | None) -> bool:
    """Whether the data of a rank decides which of two sets of keys its dictionary has."""
    decided = isinstance(condition, Unknown) and condition.decides
    if not decided or _sameness(condition) is not Sameness.DATA:
        return False
    keys = [_all_keys(item) for item in (first, second)]
    return None not in keys and keys[0] != keys[1]


def _all_keys(value: Value) -> frozenset[Any] | None:
    """The keys of a dictionary of which none is unknown; None for other values."""
    if not isinstance(value, Unknown) or value.entries is None:
        return None
    return frozenset(dict(value.entries)) if value.steps == len(value.entries) else None


def _joined_entries(
    first: Value, second: Value, condition: Value | None
) -> tuple[tuple[Any, Value], ...] | None:
    """What one of two dictionaries with the same keys holds."""
    if not isinstance(first, Unknown) or not isinstance(second, Unknown):
        return None
    if first.entries is None or second.entries is None:
        return None
    others = dict(second.entries)
    if [key for key, _ in first.entries if key not in others] or len(others) != len(first.entries):
        return None
    return tuple((key, joined(item, others[key], condition)) for key, item in first.entries)


def _joined_each(first: Value, second: Value) -> Value | None:
    """The tensors of a list that is empty on one path."""
    for one, other in ((first, second), (second, first)):
        tensor = _tensor_of(other)
        empty = isinstance(one, Many) and not one.items
        if tensor is not None and (empty or _tensor_of(one) is not None):
            return tensor
    return None


def _joined_failures(first: Value, second: Value) -> tuple[Failure, ...]:
    """What asking one of two futures for its result may raise."""
    held = [item.raises for item in (first, second) if isinstance(item, Unknown)]
    return next((failures for failures in held if failures), ())


def _tensor_of(items: Value) -> Unknown | Thing | None:
    """One of the tensors of a list, where they have as many rows as the rank's data makes, or of wrapped models."""
    each = items.each if isinstance(items, Unknown) else None
    if isinstance(each, Thing):
        return each if each.kind == "wrapped" else None
    return each if isinstance(each, Unknown) and each.shape is Sameness.DATA else None


def _given(condition: Value | None) -> tuple[Value, ...]:
    return () if condition is None else (condition,)
