"""What loops run over: values handed through, ``enumerate``, ``zip``, ``range``, and what one step gives."""

from __future__ import annotations

from ranksafe.rank_flow.expressions.slices import sliced
from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.tables import functions_that
from ranksafe.rank_flow.values import (
    LONGEST,
    NOTHING_KNOWN,
    SAME,
    Abstract,
    Constant,
    Object,
    Origin,
    Sequence,
    Share,
    Value,
    Varies,
    combined,
    evenness,
    is_small,
    joined,
    length_of,
    listed,
    origin_of,
)


def iterates(name: str) -> bool:
    """Whether a library's function goes through its arguments."""
    return name in functions_that("iterates") or name in functions_that("passes-through")


def of_iteration(run: Run, name: str, arguments: list[Value]) -> Value | None:
    """What a call that loops run over returns; None for other calls."""
    last = name.rpartition(".")[2]
    if name in functions_that("passes-through") and arguments:
        return arguments[0] if last != "next" else element(arguments[0])
    if name == "builtins.enumerate" and arguments:
        return _enumerated(arguments[0])
    if name == "builtins.zip":
        return _zipped(arguments)
    if name == "builtins.range":
        return _range(arguments, run.world.size)
    if name == "itertools.islice" and len(arguments) > 1:
        return _islice(arguments, run.world.size)
    if name == "itertools.cycle" and arguments:
        return Abstract(each=element(arguments[0]))
    if name in ("builtins.map", "itertools.batched", "more_itertools.chunked") and arguments:
        source = arguments[1 if last == "map" else 0] if len(arguments) > 1 else NOTHING_KNOWN
        found = element(source)
        each = Abstract(found.varies, origin_of(found))
        exact = length_of(source) if last == "map" else Varies.PERHAPS
        return iteration(each, exact, evenness(source), origin_of(source))
    return None


def _islice(arguments: list[Value], world_size: int) -> Value:
    bounds: list[Value | None] = [
        None if isinstance(item, Constant) and item.constant is None else item
        for item in arguments[1:4]
    ]
    bounds = [None, bounds[0], None] if len(bounds) == 1 else [*bounds, None][:3]
    found = sliced(arguments[0], bounds, world_size)
    if isinstance(found, Abstract) and isinstance(arguments[0], (Abstract, Object)):
        return found.changed(each=element(arguments[0]))
    return found


def element(iterable: Value) -> Value:
    """What one step of a loop over a value gives."""
    if isinstance(iterable, Sequence):
        if not iterable.items:
            return NOTHING_KNOWN
        found = iterable.items[0]
        for item in iterable.items[1:]:
            found = joined(found, item, SAME)
        if iterable.origin is not None and isinstance(found, Abstract):
            # The share of this rank: other ranks have other items.
            return found.changed(varies=Varies.BY_DATA, origin=iterable.origin, own_item=True)
        return found
    if isinstance(iterable, Object) and iterable.kind == "loader":
        if iterable.detail == "plain" or iterable.node is None:
            return NOTHING_KNOWN
        assert iterable.module is not None
        text = " ".join(iterable.module.text_of(iterable.node).split())[:80]
        return Abstract(
            Varies.BY_DATA, Origin(text, iterable.node, iterable.module, Varies.BY_DATA)
        )
    if isinstance(iterable, Abstract) and iterable.each is not None:
        return iterable.each
    if isinstance(iterable, Abstract):
        origin = iterable.origin
        own = origin is not None and origin.varies is Varies.BY_RANK
        return Abstract(
            iterable.varies,
            origin,
            made_by=iterable.made_by,
            own_item=own and iterable.varies is Varies.BY_DATA,
        )
    if isinstance(iterable, Constant) and isinstance(iterable.constant, range):
        return Abstract(Varies.NO)
    return NOTHING_KNOWN


def _enumerated(value: Value) -> Value:
    if isinstance(value, Sequence):
        pairs = tuple(listed((Constant(i), item)) for i, item in enumerate(value.items))
        return listed(pairs, value.origin, value.length)
    pair = listed((Abstract(Varies.NO), element(value)))
    return iteration(pair, length_of(value), evenness(value), origin_of(value))


def _zipped(values: list[Value]) -> Value:
    if values and all(isinstance(value, Sequence) for value in values):
        rows = zip(*(value.items for value in values if isinstance(value, Sequence)), strict=False)
        return listed(tuple(listed(tuple(row)) for row in rows), origin_of(*values))
    pair = listed(tuple(element(value) for value in values))
    # The shortest one decides.
    length = Varies.PERHAPS
    if values and all(evenness(value).certain for value in values):
        length = max(evenness(value) for value in values)
    return iteration(pair, Varies.PERHAPS, length, origin_of(*values))


def _range(arguments: list[Value], world_size: int) -> Value:
    if all(isinstance(item, Constant) and isinstance(item.constant, int) for item in arguments):
        constants = [item.constant for item in arguments if isinstance(item, Constant)]
        try:
            numbers = range(*constants)
        except (TypeError, ValueError):
            return NOTHING_KNOWN
        origin = origin_of(*arguments)
        share = _share_of(constants, origin, world_size)
        if not is_small(numbers.stop - numbers.start):
            return NOTHING_KNOWN
        if len(numbers) <= LONGEST:
            return Sequence(tuple(Constant(item, origin) for item in numbers), origin, share)
        varies = Varies.NO if origin is None else origin.varies
        return Abstract(varies, origin, length=share, steps=len(numbers))
    found = combined(*arguments)
    step = arguments[2] if len(arguments) > 2 else None
    strided = isinstance(step, Constant) and step.constant == world_size
    if strided and arguments[0].varies is Varies.BY_RANK:
        even = found.share is Share.EVEN
        length = Varies.PERHAPS if even else Varies.BY_RANK
        return Abstract(Varies.BY_RANK, origin_of(arguments[0]), length=length)
    if found.share is Share.UNEVEN and found.varies is Varies.BY_RANK:
        return Abstract(Varies.BY_RANK, found.origin, length=Varies.BY_RANK)
    varies = found.varies if found.varies is Varies.BY_DATA else Varies.PERHAPS
    return Abstract(Varies.NO, found.origin, length=varies)


def _share_of(constants: list[int], origin: Origin | None, world_size: int) -> Varies:
    """Whether ``range(rank, n, world_size)`` has as many numbers on all ranks."""
    if origin is None or not origin.varies.certain:
        return Varies.NO
    if len(constants) < 3 or constants[2] != world_size:
        return Varies.PERHAPS
    return Varies.NO if constants[1] % world_size == 0 else Varies.BY_RANK


def iteration(
    step: Value, length: Varies | int, even: Varies, origin: Origin | None = None
) -> Abstract:
    """What a loop runs over when each step gives ``step``; ``even``: whether all ranks take as many steps."""
    found = combined(step)
    steps = None if isinstance(length, Varies) else length
    return found.changed(
        length=even,
        each=step,
        steps=steps,
        origin=found.origin if origin is None else origin,
    )
