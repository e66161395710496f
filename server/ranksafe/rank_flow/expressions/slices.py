"""Slices, written ``xs[a:b:c]`` or ``islice(xs, a, b, c)``, and the shares of data that they cut."""

from __future__ import annotations

import ast

from ranksafe.rank_flow.values import (
    Abstract,
    Constant,
    Sequence,
    Share,
    Value,
    Varies,
    combined,
    length_of,
    origin_of,
)


def sliced(base: Value, bounds: list[Value | None], world_size: int) -> Value:
    """A slice with these bounds: lower, upper, step."""
    given = [item for item in bounds if item is not None]
    cut = _cut(bounds)
    if isinstance(base, Sequence) and cut is not None:
        return Sequence(base.items[cut], origin_of(*given), _share_of(base, bounds, world_size))
    found = combined(base, *given)
    varying = max((item.varies for item in given), default=Varies.NO)
    if not varying.certain:
        return found.changed(length=Varies.PERHAPS)
    step = bounds[2]
    even = isinstance(base, Abstract) and base.share is Share.EVEN
    rows = length_of(base)
    steps = None
    if not isinstance(rows, Varies):
        even = even or rows % world_size == 0
        steps = None if cut is None else len(range(rows)[cut])
    # xs[rank::world_size]: the shares differ by one wherever the length does not divide. Who writes xs[rank:n:size]
    # has made n divide.
    strides = isinstance(step, Constant) and step.constant == world_size
    uneven = (
        not even and bounds[1] is None if strides else found.share in (Share.ROUNDED, Share.UNEVEN)
    )
    shape = Varies.BY_RANK if uneven else Varies.PERHAPS
    return found.changed(
        varies=Varies.BY_DATA,
        length=Varies.BY_RANK if uneven else Varies.PERHAPS,
        shape=Varies.BY_DATA if varying is Varies.BY_DATA else shape,
        origin=origin_of(*given) or found.origin,
        steps=steps,
    )


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


def _cut(bounds: list[Value | None]) -> slice | None:
    """The bounds as numbers, where they are known."""
    constants = [item.constant if isinstance(item, Constant) else None for item in bounds]
    known = all(item is None or isinstance(item, Constant) for item in bounds)
    if not known or not all(item is None or isinstance(item, int) for item in constants):
        return None
    return None if constants[2] == 0 else slice(*constants)


def _share_of(base: Sequence, bounds: list[Value | None], world_size: int) -> Varies:
    """Whether all ranks have as many of the items: ``xs[rank::world_size]`` when their number divides."""
    if origin_of(*(item for item in bounds if item is not None)) is None:
        return base.length if base.origin is not None else Varies.NO
    step = bounds[2]
    if not isinstance(step, Constant) or step.constant != world_size or bounds[1] is not None:
        return Varies.PERHAPS
    return Varies.NO if len(base.items) % world_size == 0 else Varies.BY_RANK
