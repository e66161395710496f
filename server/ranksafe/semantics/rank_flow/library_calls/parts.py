"""What is cut into parts, of which each rank takes one: ``np.array_split(xs, n)[rank]``, ``parts[rank]``."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.library_calls.layers import has_uneven_shape
from ranksafe.semantics.rank_flow.values import (
    Known,
    Many,
    Sameness,
    Share,
    Thing,
    Unknown,
    Value,
    combined,
    elementwise,
    length_of,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.run import Run

_SPLITS = frozenset({"numpy.array_split", "torch.tensor_split", "torch.chunk"})
_METHODS = frozenset({"tensor_split", "chunk"})
_MOST = 64


def of_splits(run: Run, node: ast.Call, name: str, arguments: list[Value]) -> Value | None:
    """The parts that a function makes of a list or tensor; None for other calls."""
    if name not in _SPLITS or len(arguments) < 2:
        return None
    return _parts(run, node, name, arguments, named_from=len(node.args))


def of_split_method(run: Run, node: ast.Call, word: str, given: list[Value]) -> Value | None:
    """``xs.tensor_split(n)``, where the first of the values is ``xs``; None for other methods."""
    if word not in _METHODS or len(given) < 2:
        return None
    return _parts(run, node, f"torch.{word}", given, named_from=len(node.args) + 1)


def _parts(run: Run, node: ast.Call, name: str, given: list[Value], named_from: int) -> Value:
    whole, number = given[0], given[1]
    rows = length_of(whole)
    along_rows = _along_rows(node, given, named_from)
    count = number.constant if isinstance(number, Known) else None
    if along_rows and isinstance(count, int) and 0 < count <= _MOST and number.origin is None:
        if not isinstance(rows, Sameness):
            return _each(whole, _sizes(rows, count, name))
        if has_uneven_shape(whole):
            # Each part is as uneven as the whole.
            return Unknown(whole.sameness, whole.origin, each=elementwise(whole))
    by_size = count == run.world.size
    part = Unknown(
        Sameness.RANK,
        run.origin(node, Sameness.RANK),
        length=Sameness.RANK if by_size else Sameness.UNKNOWN,
    )
    return Unknown(share=Share.UNEVEN, each=part)


def _sizes(rows: int, count: int, name: str) -> list[int]:
    """How long the parts are: as even as possible, but those of ``torch.chunk``, of which the last ones are shorter."""
    if name == "torch.chunk":
        size = max(-(-rows // count), 1)
        return [min(size, rows - start) for start in range(0, rows, size)]
    less, more = divmod(rows, count)
    return [less + (index < more) for index in range(count)]


def _each(whole: Value, sizes: list[int]) -> Many:
    parts: list[Value] = []
    start = 0
    for size in sizes:
        if isinstance(whole, Many):
            parts.append(Many(whole.items[start : start + size]))
        else:
            part = combined(whole)
            given = whole.shape if isinstance(whole, Unknown) else Sameness.UNKNOWN
            dtype = whole.dtype if isinstance(whole, Unknown) else ""
            if isinstance(given, tuple):
                part = replace(part, shape=(size, *given[1:]), dtype=dtype)
            parts.append(replace(part, steps=size))
        start += size
    return Many(tuple(parts))


def _along_rows(node: ast.Call, given: list[Value], named_from: int) -> bool:
    """Whether a split cuts the first dimension."""
    dimension = given[2] if named_from > 2 else Known(0)
    for keyword, value in zip(node.keywords, given[named_from:], strict=True):
        if keyword.arg in ("dim", "axis"):
            dimension = value
    return isinstance(dimension, Known) and dimension.constant == 0


def chosen_by_rank(parts: Many, item: Value, index: Known, world_size: int, rank: int) -> Value:
    """``parts[rank]``: ranks have unequally much where their parts are not as long as each other."""
    if index.constant != rank or len(parts.items) < world_size:
        return item
    lengths = [length_of(part) for part in parts.items[:world_size]]
    exact = [length for length in lengths if not isinstance(length, Sameness)]
    if len(exact) < world_size or len(set(exact)) == 1:
        return item
    if isinstance(item, Many) or (isinstance(item, Thing) and item.kind == "loader"):
        return replace(item, origin=index.origin, length=Sameness.RANK)
    if not isinstance(item, Unknown):
        return item
    return replace(
        item,
        sameness=max(item.sameness, Sameness.DATA),
        origin=index.origin,
        length=Sameness.RANK,
        steps=lengths[rank],
        shape=Sameness.RANK if isinstance(item.shape, tuple) else item.shape,
    )
