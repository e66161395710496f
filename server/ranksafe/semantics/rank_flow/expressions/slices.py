"""Slices, written ``xs[a:b:c]`` or ``islice(xs, a, b, c)``, and the shares of data that they cut."""

from __future__ import annotations

import ast
from dataclasses import replace

from ranksafe.semantics.rank_flow.values import (
    Known,
    Many,
    Sameness,
    Share,
    Unknown,
    Value,
    combined,
    length_of,
    origin_of,
)


def sliced(base: Value, bounds: list[Value | None], world_size: int) -> Value:
    """A slice with these bounds: lower, upper, step."""
    given = [item for item in bounds if item is not None]
    cut = _cut(bounds)
    if isinstance(base, Many) and cut is not None:
        return Many(base.items[cut], origin_of(*given), _share_of(base, bounds, world_size))
    # Whether there is something in a part is not what its items were tested for.
    found = replace(combined(base, *given), decides=False)
    varying = max((item.sameness for item in given), default=Sameness.SAME)
    if not varying.varies:
        return _cut_known(base, replace(found, length=Sameness.UNKNOWN), cut)
    step = bounds[2]
    even = isinstance(base, Unknown) and base.share is Share.EVEN
    rows = length_of(base)
    steps = None
    if not isinstance(rows, Sameness):
        even = even or rows % world_size == 0
        steps = None if cut is None else len(range(rows)[cut])
    # xs[rank::world_size]: the shares differ by one wherever the length does not divide. Who writes xs[rank:n:size]
    # has made n divide.
    strides = isinstance(step, Known) and step.constant == world_size
    cuts_short = found.share in (Share.ROUNDED, Share.UNEVEN)
    uneven = not even and bounds[1] is None if strides else cuts_short
    shape = Sameness.RANK if uneven else Sameness.UNKNOWN
    return replace(
        found,
        sameness=Sameness.DATA,
        length=Sameness.RANK if uneven else Sameness.UNKNOWN,
        shape=Sameness.DATA if varying is Sameness.DATA and not _is_moved(bounds) else shape,
        origin=origin_of(*given) or found.origin,
        steps=steps,
    )


def _cut_known(base: Value, found: Unknown, cut: slice | None) -> Unknown:
    """A slice whose bounds are the same everywhere, of a tensor whose shape is known: so is its own."""
    if cut is None or not isinstance(base, Unknown) or not isinstance(base.shape, tuple):
        return found
    if not base.shape:
        return found
    shape = (len(range(base.shape[0])[cut]), *base.shape[1:])
    return replace(found, shape=shape, dtype=base.dtype)


def pads(node: ast.expr) -> bool:
    """Whether what is added to a list may be there to make its length divide: ``xs[:missing]``, ``[x] * missing``."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice)
    if isinstance(node, ast.BinOp):
        repeats = isinstance(node.op, ast.Mult)
        if repeats and (isinstance(node.left, ast.List) or isinstance(node.right, ast.List)):
            return True
        return pads(node.left) or pads(node.right)
    return False


def _is_moved(bounds: list[Value | None]) -> bool:
    """Whether both ends differ, as in ``xs[start : start + length]``: the slice may be as long everywhere."""
    return all(item is not None and item.sameness.varies for item in bounds[:2])


def _cut(bounds: list[Value | None]) -> slice | None:
    """The bounds as numbers, where they are known."""
    constants = [item.constant if isinstance(item, Known) else None for item in bounds]
    known = all(item is None or isinstance(item, Known) for item in bounds)
    if not known or not all(item is None or isinstance(item, int) for item in constants):
        return None
    return None if constants[2] == 0 else slice(*constants)


def _share_of(base: Many, bounds: list[Value | None], world_size: int) -> Sameness:
    """Whether all ranks have as many of the items: ``xs[rank::world_size]`` when their number divides."""
    if origin_of(*(item for item in bounds if item is not None)) is None:
        return base.length if base.origin is not None else Sameness.SAME
    step = bounds[2]
    if not isinstance(step, Known) or step.constant != world_size or bounds[1] is not None:
        return Sameness.UNKNOWN
    return Sameness.SAME if len(base.items) % world_size == 0 else Sameness.RANK
