"""Groups that calls are given; dictionaries of groups: which one a key names, and which ones it may be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ranksafe.rank_flow.values import Abstract, Constant, Object, Value

Groups = tuple[tuple[Any, Object], ...]


def group_of(given: Value | None) -> tuple[Object | None, bool]:
    """The group that an operation is given, and whether its members are known; None: the default group, or nobody knows
    which."""
    if isinstance(given, Object) and given.kind == "group":
        return given, given.detail is not None
    return None, given is None or (isinstance(given, Constant) and given.constant is None)


def dictionary_of_groups(keys: Iterable[Value | None], values: Iterable[Value]) -> Groups | None:
    """Keys and groups, where all keys are constants and all values groups."""
    found = []
    for key, value in zip(keys, values, strict=True):
        if not isinstance(key, Constant) or not isinstance(value, Object) or value.kind != "group":
            return None
        found.append((key.constant, value))
    return tuple(found)


def with_group(before: Abstract, key: Value, value: Value) -> Abstract:
    """The dictionary after ``groups[key] = value``."""
    groups = before.groups
    is_group = isinstance(value, Object) and value.kind == "group"
    if groups is None or not is_group or not isinstance(key, Constant):
        return before.changed(groups=None)
    kept = tuple(item for item in groups if item[0] != key.constant)
    return before.changed(groups=(*kept, (key.constant, value)))


def group_at(base: Abstract, index: Value) -> Value | None:
    """``groups[index]``; one of all groups where the key is not known. None where it is no dictionary of groups."""
    if not base.groups:
        return None
    if isinstance(index, Constant):
        return next((group for key, group in base.groups if key == index.constant), None)
    return Abstract(groups=base.groups)


def may_have(groups: Groups, rank: int) -> bool:
    """Whether a rank is a member of one of the groups, or of one whose members are not known."""
    return any(group.detail is None or rank in group.detail for _, group in groups)
