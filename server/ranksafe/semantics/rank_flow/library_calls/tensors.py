"""Random numbers, clocks, and tensors that are made: which ranks have the same ones, of what shape."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.library_calls.element_types import named, of_literals
from ranksafe.semantics.rank_flow.library_calls.growing_lists import joined_rows, stacked
from ranksafe.semantics.rank_flow.library_calls.random_numbers import given_generator
from ranksafe.semantics.rank_flow.library_calls.selections import of_selection
from ranksafe.semantics.rank_flow.values import (
    SAME,
    Known,
    Many,
    Sameness,
    Unknown,
    Value,
    combined,
    origin_of,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.run import Run

_CLOCKS = frozenset(
    {
        "time.time",
        "time.monotonic",
        "time.perf_counter",
        "datetime.datetime.now",
        "time.process_time",
    }
)
_RANDOM = ("random.", "numpy.random.")
_TORCH_RANDOM = frozenset(
    {
        "torch.rand",
        "torch.randn",
        "torch.randint",
        "torch.randperm",
        "torch.bernoulli",
        "torch.normal",
        "torch.multinomial",
    }
)


_STACKS = frozenset(
    {
        "torch.tensor", "torch.as_tensor", "torch.cat", "torch.stack", "torch.concat", "torch.vstack",
        "torch.hstack", "torch.LongTensor", "torch.FloatTensor", "torch.Tensor", "numpy.array",
        "numpy.concatenate", "numpy.stack", "numpy.vstack", "numpy.asarray", "torch.from_numpy",
    }
)  # fmt: skip

_JOINS = frozenset({"torch.cat", "torch.concat", "torch.vstack", "torch.hstack"})


def of_tensors(run: Run, node: ast.Call, name: str, arguments: list[Value]) -> Value | None:
    """What such a call returns; None for other calls."""
    last = name.rpartition(".")[2]
    if name in ("torch.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all"):
        run.seeded_by_rank = any(item.sameness.varies for item in arguments)
        return SAME
    if name == "torch.seed":
        # The process takes a seed of its own.
        run.seeded_by_rank = True
        return Unknown(Sameness.DATA, run.origin(node, Sameness.DATA))
    if name in _CLOCKS or (name.startswith(_RANDOM) and last not in ("seed", "default_rng")):
        return Unknown(Sameness.DATA, run.origin(node, Sameness.DATA))
    if name in _TORCH_RANDOM:
        shaped = last in ("rand", "randn", "bernoulli_")
        given: list[Value] = arguments[: len(node.args)] if shaped else []
        if last == "randint":
            positional = arguments[: len(node.args)]
            given += [item for item in positional if isinstance(item, Many)][:1]
        shape = _shape_from(given) if given else Sameness.UNKNOWN
        dtype = _dtype_of(node, "int64" if last in ("randint", "randperm") else "float32")
        drawn = given_generator(run, node, arguments)
        if drawn is not None:
            return replace(drawn, shape=shape, dtype=dtype, length=_rows(given))
        if run.seeded_by_rank:
            origin = run.origin(node, Sameness.DATA)
            return Unknown(Sameness.DATA, origin, shape=shape, dtype=dtype, length=_rows(given))
        return Unknown(Sameness.UNKNOWN, shape=shape, dtype=dtype)
    if name in ("torch.zeros", "torch.ones", "torch.empty", "torch.full"):
        return Unknown(
            max((item.sameness for item in arguments), default=Sameness.SAME),
            origin_of(*arguments),
            shape=_shape_from(arguments[: 1 if last == "full" else len(node.args)]),
            dtype="" if last == "full" else _dtype_of(node, "float32"),
        )
    if name in _STACKS and (uneven := stacked(arguments)) is not None:
        return replace(combined(*arguments), shape=uneven, length=uneven)
    if name in _JOINS and (uneven := joined_rows(arguments)) is not None:
        return replace(combined(*arguments), shape=uneven, length=uneven)
    if name in ("torch.tensor", "torch.as_tensor") and arguments:
        first = arguments[0]
        found = combined(*arguments)
        size: Sameness | tuple[int, ...] = Sameness.UNKNOWN
        if isinstance(first, Many):
            size = (len(first.items),)
        elif isinstance(first, Known):
            size = ()
        return replace(found, shape=size, dtype=_dtype_of(node, of_literals(first)))
    if name == "torch.arange" and arguments:
        whole = all(_is_whole(item) for item in node.args)
        found = combined(*arguments)
        dtype = _dtype_of(node, "int64" if whole else "")
        return replace(found, dtype=dtype, shape=_of_range(arguments[: len(node.args)]))
    if name in ("torch.zeros_like", "torch.ones_like", "torch.empty_like") and arguments:
        like = arguments[0]
        if isinstance(like, Unknown):
            shape = like.shape if isinstance(like.shape, tuple) else Sameness.UNKNOWN
            return replace(combined(*arguments), shape=shape, dtype=_dtype_of(node, like.dtype))
    return of_selection(node, name, arguments)


def _of_range(bounds: list[Value]) -> Sameness | tuple[int, ...]:
    """The shape of ``torch.arange``."""
    constants = [item.constant for item in bounds if isinstance(item, Known)]
    if len(constants) == len(bounds) <= 3 and all(isinstance(item, int) for item in constants):
        try:
            return (len(range(*constants)),)
        except (TypeError, ValueError):
            return Sameness.UNKNOWN
    worst = max((item.sameness for item in bounds), default=Sameness.UNKNOWN)
    return worst if worst.varies else Sameness.UNKNOWN


def _dtype_of(node: ast.Call, default: str) -> str:
    """The element type a creation asks for; empty when it is not written as ``torch.name``."""
    for keyword in node.keywords:
        if keyword.arg == "dtype":
            asked = keyword.value
            if isinstance(asked, ast.Attribute) and getattr(asked.value, "id", "") == "torch":
                return named(asked.attr)
            return ""
    return default


def _is_whole(node: ast.expr) -> bool:
    """Whether an argument certainly is a whole number."""
    if isinstance(node, ast.Constant):
        return node.value.__class__ is int
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("len", "int")


def _rows(sizes: list[Value]) -> Sameness:
    """Whether the first dimension of a tensor of this size is that of the rank's own data."""
    first = sizes[0].items[:1] if sizes and isinstance(sizes[0], Many) else sizes[:1]
    own = any(item.sameness is Sameness.DATA for item in first)
    return Sameness.DATA if own else Sameness.UNKNOWN


def _shape_from(arguments: list[Value]) -> Sameness | tuple[int, ...]:
    sizes = list(arguments)
    if len(sizes) == 1 and isinstance(sizes[0], Many):
        sizes = list(sizes[0].items)
    if sizes and all(isinstance(item, Known) and isinstance(item.constant, int) for item in sizes):
        return tuple(item.constant for item in sizes if isinstance(item, Known))
    worst = max((item.sameness for item in sizes), default=Sameness.UNKNOWN)
    return worst if worst.varies else Sameness.UNKNOWN
