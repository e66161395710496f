"""What loops run over: values handed through, ``enumerate``, ``zip``, ``range``, and what one step gives."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

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
    joined,
    length_of,
    origin_of,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.run import Run

_PASSED_THROUGH = frozenset(
    {
        "tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.trange", "builtins.iter", "builtins.reversed", "builtins.list",
        "builtins.tuple", "builtins.sorted", "copy.deepcopy", "copy.copy", "torch.compile", "builtins.next",
        "rich.progress.track", "tqdm.notebook.tqdm", "accelerate.utils.tqdm", "itertools.cycle",
    }
)  # fmt: skip


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
    return None


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
            return replace(found, sameness=Sameness.DATA, origin=iterable.origin)
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
        return Unknown(iterable.sameness, iterable.origin, made_by=iterable.made_by)
    if isinstance(iterable, Known) and isinstance(iterable.constant, range):
        return Unknown(Sameness.SAME)
    return NOTHING_KNOWN


def _enumerated(value: Value) -> Value:
    if isinstance(value, Many):
        return Many(tuple(Many((Known(i), item)) for i, item in enumerate(value.items)))
    return _iteration(Many((Unknown(Sameness.SAME), element(value))), length_of(value))


def _zipped(values: list[Value]) -> Value:
    if values and all(isinstance(value, Many) for value in values):
        rows = zip(*(value.items for value in values if isinstance(value, Many)), strict=False)
        return Many(tuple(Many(tuple(row)) for row in rows))
    lengths = [item for value in values if isinstance(item := length_of(value), Sameness)]
    pair = Many(tuple(element(value) for value in values))
    return _iteration(pair, max(lengths, default=Sameness.UNKNOWN))


def _range(arguments: list[Value], world_size: int) -> Value:
    if all(isinstance(item, Known) and isinstance(item.constant, int) for item in arguments):
        constants = [item.constant for item in arguments if isinstance(item, Known)]
        try:
            numbers = range(*constants)
        except (TypeError, ValueError):
            return NOTHING_KNOWN
        origin = origin_of(*arguments)
        if len(numbers) <= 64:
            return Many(tuple(Known(item, origin) for item in numbers), origin)
        return Unknown(Sameness.SAME, length=Sameness.SAME)
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


def _iteration(step: Many, length: Sameness | int) -> Value:
    """What a loop runs over when each step gives ``step``."""
    found = combined(*step.items)
    known = length if isinstance(length, Sameness) else Sameness.SAME
    return replace(found, length=known, each=step)
