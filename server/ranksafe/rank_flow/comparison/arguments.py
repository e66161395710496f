"""Arguments of one collective on two ranks."""

from __future__ import annotations

from ranksafe.rank_flow.comparison.differences import Mismatch
from ranksafe.rank_flow.library_calls.element_types import differ
from ranksafe.rank_flow.traces import Event
from ranksafe.rank_flow.values import Constant


def mismatch(one: Event, other: Event) -> Mismatch | None:
    """The first argument in which two calls of one collective do not fit together."""
    if one.members is not None and other.members is not None and one.members != other.members:
        return Mismatch("members", one)
    roots = [item.root for item in (one, other)]
    if all(isinstance(root, Constant) and isinstance(root.constant, int) for root in roots):
        if roots[0] != roots[1]:
            return Mismatch("root", one)
    if isinstance(one.shape, tuple) and isinstance(other.shape, tuple):
        if one.shape != other.shape:
            listed = "object" in one.operation.word
            return Mismatch("list" if listed else "shape", one)
    if "object" not in one.operation.word and differ(one.dtype, other.dtype):
        return Mismatch("dtype", one)
    return None
