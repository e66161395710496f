"""Dictionaries whose keys are written in the code: each entry is known by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ranksafe.semantics.rank_flow.expressions.amounts import chosen
from ranksafe.semantics.rank_flow.library_calls.pure_functions import constant_of
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    SAME,
    Known,
    Many,
    Sameness,
    Thing,
    Unknown,
    Value,
    combined,
    origin_of,
    part_of,
)

Entries = tuple[tuple[Any, Value], ...]
_MOST = 64
EMPTY_DICTIONARY = replace(combined(), groups=(), entries=(), steps=0)


def entries_of(keys: list[Value | None], values: list[Value]) -> Entries | None:
    """What ``{"loss": loss}`` holds; None where a key is computed or unpacked."""
    found: dict[Any, Value] = {}
    for written, value in zip(keys, values, strict=True):
        key = constant_of(written) if isinstance(written, Many) else written
        if not isinstance(key, Known) or key.origin is not None or len(found) >= _MOST:
            return None
        found[key.constant] = value
    return tuple(found.items())


def entry_at(base: Unknown, index: Value) -> Value | None:
    """``stats["loss"]``; None where it is not known which entry that is."""
    if isinstance(index, Many):
        index = constant_of(index) or index
    if base.entries is None or not isinstance(index, Known):
        return None
    if index.origin is not None:
        return _of_rank(base, index)
    for key, value in base.entries:
        if key == index.constant:
            # Who else was given the dictionary may have stored another constant.
            ours = value.sameness is Sameness.RANK
            return combined(value) if isinstance(value, Known) and not ours else value
    return NOTHING_KNOWN


def has_no_entry(base: Unknown, index: Value) -> bool:
    """Whether a dictionary, of which all entries are known, has none under a key."""
    if isinstance(index, Many):
        index = constant_of(index) or index
    if base.entries is None or base.steps != len(base.entries) or not isinstance(index, Known):
        return False
    return index.origin is None and index.constant not in dict(base.entries)


def _of_rank(base: Unknown, index: Known) -> Value | None:
    """The entry that the rank names: another one on another rank."""
    held = dict(base.entries or ())
    value = held.get(index.constant)
    if isinstance(value, Known):
        return chosen(Known(value.constant, origin_of(value, index)), tuple(held.values()))
    # Other ranks have another one.
    return value if isinstance(value, Thing) else None


def with_entry(before: Unknown, index: Value, value: Value) -> Unknown:
    """The dictionary after ``stats[index] = value``."""
    if before.entries is None or not isinstance(index, Known) or index.origin is not None:
        return replace(combined(before, value), length=before.length)
    entries = tuple(item for item in before.entries if item[0] != index.constant)
    return of_entries((*entries, (index.constant, value)), before)


def of_entries(entries: Entries, like: Unknown) -> Unknown:
    """A dictionary with these entries; as a whole it differs where one of them does."""
    whole = combined(*(value for _, value in entries))
    steps = None if like.steps is None else len(entries)
    return replace(whole, entries=entries[:_MOST], length=like.length, steps=steps)


def merged_entries(before: Unknown, more: Value) -> Unknown | None:
    """``stats | more``, or ``stats`` after ``update(more)``; None where not both are known."""
    if before.entries is None or not isinstance(more, Unknown) or more.entries is None:
        return None
    after = {**dict(before.entries), **dict(more.entries)}
    return of_entries(tuple(after.items()), before)


def pairs_of(dictionary: Unknown) -> Unknown:
    """What ``stats.items()`` gives a loop."""
    if dictionary.entries is None:
        pair = Many((NOTHING_KNOWN, part_of(dictionary)))
    else:
        values = [value for _, value in dictionary.entries]
        pair = Many((SAME, combined(*values)))
    length = dictionary.length if dictionary.length is Sameness.SAME else Sameness.UNKNOWN
    return replace(combined(dictionary), each=pair, length=length, steps=dictionary.steps)


def counted_view(dictionary: Unknown, word: str) -> Unknown | Many | None:
    """``stats.keys()`` and its like, of a dictionary of which this rank knows how many entries it has; else None."""
    if dictionary.entries is None or dictionary.steps is None:
        return None
    written = dictionary.sameness.varies or dictionary.origin is None
    counted = 0 < len(dictionary.entries) == dictionary.steps
    if word in ("items", "keys", "values") and written and counted:
        each: list[Value] = []
        for key, value in dictionary.entries:
            # Who else was given the dictionary may have stored other constants.
            held = entry_at(dictionary, Known(key)) or value
            each.append(
                Many((Known(key), held))
                if word == "items"
                else Known(key)
                if word == "keys"
                else held
            )
        return Many(tuple(each), dictionary.origin if dictionary.length.varies else None)
    pairs = pairs_of(dictionary)
    if word == "items":
        return pairs
    if word not in ("keys", "values") or not isinstance(pairs.each, Many):
        return None
    return replace(pairs, each=pairs.each.items[word == "values"])


def keys_of(iterable: Value) -> Value:
    """What a loop over a dictionary of known keys runs over; other values are left as they are."""
    if not isinstance(iterable, Unknown) or not iterable.entries:
        return iterable
    view = counted_view(iterable, "keys")
    return view if isinstance(view, Many) else iterable
