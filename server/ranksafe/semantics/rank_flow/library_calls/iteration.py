"""What loops run over: values handed through, ``enumerate``, ``zip``, ``range``, and what one step gives."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.expressions.entries import keys_of
from ranksafe.semantics.rank_flow.expressions.slices import sliced
from ranksafe.semantics.rank_flow.joined_values import joined
from ranksafe.semantics.rank_flow.own_rows import own_row
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    SAME,
    Known,
    Many,
    Origin,
    Sameness,
    Share,
    Thing,
    Unknown,
    Value,
    combined,
    evenness,
    length_of,
    origin_of,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.run import Run

_PASSED_THROUGH = frozenset(
    {
        "tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.trange", "builtins.iter", "builtins.reversed", "builtins.list",
        "builtins.tuple", "builtins.sorted", "copy.deepcopy", "copy.copy", "torch.compile", "builtins.next",
        "rich.progress.track", "tqdm.notebook.tqdm", "accelerate.utils.tqdm",
    }
)  # fmt: skip


_ITERATES = _PASSED_THROUGH | frozenset(
    {
        "builtins.enumerate", "builtins.zip", "builtins.map", "itertools.islice", "itertools.chain",
        "itertools.cycle", "itertools.batched", "more_itertools.chunked", "builtins.sum", "builtins.max",
        "builtins.min", "torch.utils.data.Subset", "itertools.chain.from_iterable", "itertools.zip_longest",
        "itertools.product", "builtins.filter", "builtins.set", "collections.deque", "builtins.any", "builtins.all",
    }
)  # fmt: skip


_CHAINS = frozenset({"itertools.chain", "itertools.chain.from_iterable"})
_SETS = frozenset({"builtins.set", "builtins.frozenset"})
_LONGEST = 64
_COUNT = Unknown(Sameness.SAME, dtype="count", each=Unknown(Sameness.SAME))
"""What ``itertools.count()`` gives."""


def iterates(name: str) -> bool:
    """Whether a library's function goes through its arguments."""
    return name in _ITERATES


def of_iteration(run: Run, name: str, arguments: list[Value]) -> Value | None:
    """What a call that loops run over returns; None for other calls."""
    last = name.rpartition(".")[2]
    if name in _PASSED_THROUGH and arguments:
        return arguments[0] if last != "next" else element(arguments[0])
    if name == "builtins.enumerate" and arguments:
        return _enumerated(arguments[0])
    if name == "builtins.zip":
        return _zipped(arguments)
    if name == "builtins.range":
        return _range(arguments, run.world.size)
    if name == "builtins.slice" and arguments:
        return Thing("slice", detail=tuple(_bounds(arguments)))
    if name == "itertools.islice" and len(arguments) > 1:
        return _islice(arguments, run.world.size)
    if name in _CHAINS and arguments:
        if last == "from_iterable":
            return _chained(list(arguments[0].items)) if isinstance(arguments[0], Many) else None
        return _chained(arguments)
    if name in ("itertools.product", "itertools.zip_longest") and arguments:
        return _crossed(arguments)
    if name == "itertools.repeat" and arguments:
        return _repeated(arguments)
    if name == "itertools.count":
        return _COUNT
    if name == "builtins.filter" and len(arguments) == 2:
        return _filtered(arguments)
    if name in _SETS and arguments and evenness(arguments[0]).varies:
        return arguments[0]
    if name == "torch.nn.ModuleList":
        return arguments[0] if arguments else Many(())
    if name == "collections.deque":
        filled = bool(arguments) and not isinstance(arguments[0], Known)
        return arguments[0] if filled else Many(())
    if name == "itertools.cycle" and arguments:
        return Unknown(each=element(arguments[0]))
    if name in ("builtins.map", "itertools.batched", "more_itertools.chunked") and arguments:
        source = arguments[1 if last == "map" else 0] if len(arguments) > 1 else NOTHING_KNOWN
        found = element(source)
        each = Unknown(found.sameness, origin_of(found))
        exact = length_of(source) if last == "map" else Sameness.UNKNOWN
        return iteration(each, exact, evenness(source), origin_of(source))
    return None


def _chained(values: list[Value]) -> Value:
    """One after the other: as uneven as the most uneven part."""
    if values and all(isinstance(value, Many) for value in values):
        items = [item for value in values if isinstance(value, Many) for item in value.items]
        if len(items) <= _LONGEST:
            origin = next((v.origin for v in values if isinstance(v, Many) and v.origin), None)
            return Many(tuple(items), origin, max(evenness(value) for value in values))
    steps = [
        element(value) for value in values if not (isinstance(value, Many) and not value.items)
    ]
    found = steps[0] if steps else NOTHING_KNOWN
    for step in steps[1:]:
        found = joined(found, step, SAME)
    return iteration(found, Sameness.UNKNOWN, _worst(values), _origin_of_worst(values))


def _filtered(values: list[Value]) -> Value:
    """``filter(test, values)``: as long as the values, at most."""
    source = values[1]
    found = element(source)
    keeps_rank = evenness(source).varies
    even = evenness(source) if keeps_rank else Sameness.UNKNOWN
    if found.sameness is Sameness.DATA:
        even = max(even, Sameness.DATA)
    return iteration(found, Sameness.UNKNOWN, even, origin_of(source))


def _crossed(values: list[Value]) -> Value:
    """``itertools.product``, and ``zip_longest``, which ends with the longest."""
    row = Many(tuple(element(value) for value in values))
    return iteration(row, Sameness.UNKNOWN, _worst(values), _origin_of_worst(values))


def _repeated(arguments: list[Value]) -> Value:
    if len(arguments) < 2:
        return Unknown(each=arguments[0])
    times = arguments[1]
    if isinstance(times, Known) and isinstance(times.constant, int):
        origin = times.origin
        if times.constant <= _LONGEST:
            return Many((arguments[0],) * times.constant, origin)
    varies = times.sameness if times.sameness is Sameness.DATA else Sameness.UNKNOWN
    return iteration(arguments[0], Sameness.UNKNOWN, varies, origin_of(times))


def _worst(values: list[Value]) -> Sameness:
    worst = max((evenness(value) for value in values), default=Sameness.UNKNOWN)
    return worst if worst.varies else Sameness.UNKNOWN


def _origin_of_worst(values: list[Value]) -> Origin | None:
    return origin_of(*(value for value in values if evenness(value).varies))


def _islice(arguments: list[Value], world_size: int) -> Value:
    found = sliced(arguments[0], _bounds(arguments[1:4]), world_size)
    if isinstance(found, Unknown) and isinstance(arguments[0], (Unknown, Thing)):
        return replace(found, each=element(arguments[0]))
    return found


def _bounds(arguments: list[Value]) -> list[Value | None]:
    """Lower bound, upper bound and step, as ``range``, ``slice`` and ``islice`` are given them."""
    bounds: list[Value | None] = [
        None if isinstance(item, Known) and item.constant is None else item for item in arguments
    ]
    return [None, bounds[0], None] if len(bounds) == 1 else [*bounds, None][:3]


def element(iterable: Value) -> Value:
    """What one step of a loop over a value gives."""
    if isinstance(iterable, Many):
        if not iterable.items:
            return NOTHING_KNOWN
        found = iterable.items[0]
        for item in iterable.items[1:]:
            found = joined(found, item, SAME)
        if iterable.origin is not None and isinstance(found, Unknown):
            # The share of this rank: other ranks have other items.
            return replace(found, sameness=Sameness.DATA, origin=iterable.origin, own_item=True)
        if iterable.origin is not None and isinstance(found, Many):
            return own_row(found, iterable, iterable.origin)
        return found
    if isinstance(iterable, Thing) and iterable.kind == "loader":
        if iterable.detail == "plain" or iterable.node is None:
            return NOTHING_KNOWN
        assert iterable.module is not None
        text = " ".join(iterable.module.text_of(iterable.node).split())[:80]
        return Unknown(Sameness.DATA, Origin(text, iterable.node, iterable.module, Sameness.DATA))
    if isinstance(iterable, Unknown) and iterable.each is not None:
        return iterable.each
    if isinstance(iterable, Unknown):
        origin = iterable.origin
        own = origin is not None and origin.sameness is Sameness.RANK
        return Unknown(
            iterable.sameness,
            origin,
            made_by=iterable.made_by,
            own_item=own and iterable.sameness is Sameness.DATA,
        )
    if isinstance(iterable, Known) and isinstance(iterable.constant, range):
        return Unknown(Sameness.SAME)
    return NOTHING_KNOWN


def _enumerated(value: Value) -> Value:
    value = keys_of(value)
    if isinstance(value, Many):
        pairs = tuple(Many((Known(i), item)) for i, item in enumerate(value.items))
        return Many(pairs, value.origin, value.length)
    pair = Many((Unknown(Sameness.SAME), element(value)))
    return iteration(pair, length_of(value), evenness(value), origin_of(value))


def _zipped(values: list[Value]) -> Value:
    if values and all(isinstance(value, Many) for value in values):
        rows = zip(*(value.items for value in values if isinstance(value, Many)), strict=False)
        origins = [value.origin for value in values if isinstance(value, Many) and value.origin]
        return Many(tuple(Many(tuple(row)) for row in rows), next(iter(origins), None))
    pair = Many(tuple(element(value) for value in values))
    # The shortest one decides.
    length = Sameness.UNKNOWN
    ending = [value for value in values if not _is_endless(value)]
    if ending and all(evenness(value).varies for value in ending):
        length = max(evenness(value) for value in ending)
    return iteration(pair, Sameness.UNKNOWN, length, origin_of(*values))


def _is_endless(value: Value) -> bool:
    """Whether a loop over it never ends by itself: ``itertools.count()``."""
    return value == _COUNT


def _range(arguments: list[Value], world_size: int) -> Value:
    if all(isinstance(item, Known) and isinstance(item.constant, int) for item in arguments):
        constants = [item.constant for item in arguments if isinstance(item, Known)]
        try:
            numbers = range(*constants)
        except (TypeError, ValueError):
            return NOTHING_KNOWN
        origin = origin_of(*arguments)
        share = _share_of(constants, origin, world_size)
        if len(numbers) <= 64:
            return Many(tuple(Known(item, origin) for item in numbers), origin, share)
        sameness = Sameness.SAME if origin is None else origin.sameness
        return Unknown(sameness, origin, length=share, steps=len(numbers))
    found = combined(*arguments)
    step = arguments[2] if len(arguments) > 2 else None
    strided = isinstance(step, Known) and step.constant == world_size
    if strided and arguments[0].sameness is Sameness.RANK:
        even = found.share is Share.EVEN
        length = Sameness.UNKNOWN if even else Sameness.RANK
        return Unknown(Sameness.RANK, origin_of(arguments[0]), length=length)
    if found.share is Share.UNEVEN and found.sameness is Sameness.RANK:
        return Unknown(Sameness.RANK, found.origin, length=Sameness.RANK)
    varies = found.sameness if found.sameness is Sameness.DATA else Sameness.UNKNOWN
    return Unknown(Sameness.SAME, found.origin, length=varies)


def _share_of(constants: list[int], origin: Origin | None, world_size: int) -> Sameness:
    """Whether ``range(rank, n, world_size)`` has as many numbers on all ranks."""
    if origin is None or not origin.sameness.varies:
        return Sameness.SAME
    if len(constants) < 3 or constants[2] != world_size:
        return Sameness.UNKNOWN
    return Sameness.SAME if constants[1] % world_size == 0 else Sameness.RANK


def iteration(
    step: Value, length: Sameness | int, even: Sameness, origin: Origin | None = None
) -> Unknown:
    """What a loop runs over when each step gives ``step``; ``even``: whether all ranks take as many steps."""
    found = combined(step)
    steps = None if isinstance(length, Sameness) else length
    return replace(
        found,
        length=even,
        each=step,
        steps=steps,
        origin=found.origin if origin is None else origin,
    )
