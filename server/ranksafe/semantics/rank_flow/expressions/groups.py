"""Dictionaries of groups: which group a key names, and which ones it may be."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    Known,
    Sameness,
    Thing,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.run import Run

Groups = tuple[tuple[Any, Thing], ...]


def dictionary_of_groups(keys: Sequence[Value | None], values: Sequence[Value]) -> Groups | None:
    """Keys and groups, where all keys are constants and all values groups."""
    found = []
    for key, value in zip(keys, values, strict=True):
        if not isinstance(key, Known) or not isinstance(value, Thing) or value.kind != "group":
            return None
        found.append((key.constant, value))
    return tuple(found)


def with_group(before: Unknown, key: Value, value: Value) -> Unknown:
    """The dictionary after ``groups[key] = value``."""
    groups = before.groups
    if groups is None or not isinstance(key, Known):
        return replace(before, groups=None)
    if not isinstance(value, Thing) or value.kind != "group":
        return replace(before, groups=None)
    kept = tuple(item for item in groups if item[0] != key.constant)
    return replace(before, groups=(*kept, (key.constant, value)))


def group_at(base: Unknown, index: Value) -> Value | None:
    """``groups[index]``; one of all groups where the key is not known. None where it is no dictionary of groups."""
    if not base.groups:
        return None
    if isinstance(index, Known):
        return next((group for key, group in base.groups if key == index.constant), None)
    return replace(NOTHING_KNOWN, groups=base.groups)


def may_have(groups: Groups, rank: int) -> bool:
    """Whether a rank is a member of one of the groups, or of one whose members are not known."""
    return any(group.detail is None or rank in group.detail for _, group in groups)


def place_in(run: Run, group: Thing, node: ast.Call, word: str) -> Value | None:
    """``group.rank()`` and ``group.size()``; None for other methods and where the members are not known."""
    if group.kind != "group" or group.detail is None:
        return None
    members: tuple[int, ...] = group.detail
    if word == "size":
        return Known(len(members))
    if word == "rank":
        inside = run.world.rank in members
        index = members.index(run.world.rank) if inside else -1
        return Known(index, run.origin(node, Sameness.RANK))
    return None
