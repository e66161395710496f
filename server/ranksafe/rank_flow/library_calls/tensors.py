"""Random numbers, clocks, and tensors that are made: which ranks have the same ones, of what shape."""

from __future__ import annotations

import ast

from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.tables import families, functions_that
from ranksafe.rank_flow.values import (
    NOTHING_KNOWN,
    SAME,
    Abstract,
    Constant,
    Sequence,
    Value,
    Varies,
    combined,
    evenness,
    origin_of,
    whole_number,
)


def of_tensors(run: Run, node: ast.Call, name: str, arguments: list[Value]) -> Value | None:
    """What such a call returns; None for other calls."""
    last = name.rpartition(".")[2]
    drawn = _drawn(run, node, name, arguments)
    if drawn is not None:
        return drawn
    if name in ("torch.zeros", "torch.ones", "torch.empty", "torch.full"):
        return Abstract(
            max((item.varies for item in arguments), default=Varies.NO),
            origin_of(*arguments),
            shape=_shape_from(arguments[: 1 if last == "full" else len(node.args)]),
        )
    if name in functions_that("stacks") and arguments:
        stacked = arguments[0]
        uneven = evenness(stacked)
        if isinstance(stacked, (Abstract, Sequence)) and uneven.certain:
            return combined(*arguments).changed(shape=uneven, length=uneven)
    if name in ("torch.tensor", "torch.as_tensor") and arguments:
        first = arguments[0]
        found = combined(*arguments)
        size: Varies | tuple[int, ...] = Varies.PERHAPS
        if isinstance(first, Sequence):
            size = (len(first.items),)
        elif isinstance(first, Constant):
            size = ()
        return found.changed(shape=size)
    if name == "torch.arange" and arguments:
        return combined(*arguments).changed(shape=_of_range(arguments[: len(node.args)]))
    if name in ("torch.zeros_like", "torch.ones_like", "torch.empty_like") and arguments:
        like = arguments[0]
        if isinstance(like, Abstract):
            shape = like.shape if isinstance(like.shape, tuple) else Varies.PERHAPS
            return combined(*arguments).changed(shape=shape)
    if name in ("torch.nonzero", "torch.masked_select") and arguments:
        found = combined(*arguments)
        return found.changed(shape=found.varies)
    return None


def _drawn(run: Run, node: ast.Call, name: str, arguments: list[Value]) -> Value | None:
    """Clocks, random numbers and what seeds them."""
    seeded = families("seeds").get(name)
    if seeded is not None:
        differs = any(item.varies.certain for item in arguments)
        run.seeds.update(dict.fromkeys(seeded, Varies.BY_DATA if differs else Varies.NO))
        return SAME
    if name == "torch.seed":
        # The process takes a seed of its own.
        run.seeds["torch"] = Varies.BY_DATA
        return _own(run, node)
    if name in functions_that("clock"):
        return _own(run, node)
    if name in families("random"):
        varies = run.seeds.get("torch", Varies.PERHAPS)
        drawn = _own(run, node) if varies.certain else Abstract(varies)
        return drawn.changed(shape=_shape_of_random(node, name, arguments))
    family, _, last = name.rpartition(".")
    if family not in ("random", "numpy.random") or last == "default_rng" or last[:1].isupper():
        return None
    differs = run.seeds.get(family, Varies.BY_DATA).certain
    return _own(run, node) if differs else NOTHING_KNOWN


def _own(run: Run, node: ast.Call) -> Abstract:
    return Abstract(Varies.BY_DATA, run.origin(node, Varies.BY_DATA))


def _shape_of_random(node: ast.Call, name: str, arguments: list[Value]) -> Varies | tuple[int, ...]:
    last = name.rpartition(".")[2]
    positional = arguments[: len(node.args)]
    given: list[Value] = []
    if last in ("rand", "randn"):
        given = positional
    elif last == "randint":
        given += [item for item in positional if isinstance(item, Sequence)][:1]
    return _shape_from(given) if given else Varies.PERHAPS


def _of_range(bounds: list[Value]) -> Varies | tuple[int, ...]:
    """The shape of ``torch.arange``."""
    constants = [item.constant for item in bounds if isinstance(item, Constant)]
    plain = all(isinstance(item, int) for item in constants)
    if plain and 1 <= len(constants) == len(bounds) <= 3:
        try:
            return (len(range(*constants)),)
        except (ValueError, OverflowError):
            return Varies.PERHAPS
    worst = max((item.varies for item in bounds), default=Varies.PERHAPS)
    return worst if worst.certain else Varies.PERHAPS


def _shape_from(arguments: list[Value]) -> Varies | tuple[int, ...]:
    sizes = list(arguments)
    if len(sizes) == 1 and isinstance(sizes[0], Sequence):
        sizes = list(sizes[0].items)
    numbers = tuple(number for item in sizes if (number := whole_number(item)) is not None)
    if sizes and len(numbers) == len(sizes):
        return numbers
    worst = max((item.varies for item in sizes), default=Varies.PERHAPS)
    return worst if worst.certain else Varies.PERHAPS
