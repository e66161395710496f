"""Random numbers, clocks, and tensors that are made: which ranks have the same ones, of what shape."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.library_calls.element_types import named, of_literals
from ranksafe.semantics.rank_flow.library_calls.growing_lists import joined_rows, stacked
from ranksafe.semantics.rank_flow.library_calls.random_numbers import (
    drawn_by_process,
    given_generator,
)
from ranksafe.semantics.rank_flow.library_calls.selections import of_selection
from ranksafe.semantics.rank_flow.values import (
    SAME,
    Known,
    Many,
    Sameness,
    Unknown,
    Value,
    combined,
    elementwise,
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
_DEVICE_STATE = frozenset(
    {
        "torch.cuda.mem_get_info", "torch.cuda.memory_allocated", "torch.cuda.max_memory_allocated",
        "torch.cuda.memory_reserved", "torch.cuda.max_memory_reserved", "torch.cuda.memory_stats",
        "torch.cuda.utilization", "torch.cuda.temperature", "psutil.virtual_memory", "psutil.cpu_percent",
        "psutil.Process",
    }
)  # fmt: skip
"""What a process asks of its own device or machine."""
_QUEUE_STATE = frozenset(
    f"{queue}.{method}"
    for queue in (
        "queue.Queue",
        "queue.SimpleQueue",
        "queue.PriorityQueue",
        "multiprocessing.Queue",
    )
    for method in ("qsize", "empty", "full")
)
"""Each process has queues of its own, which others fill at their own time."""
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

_ELEMENTWISE = frozenset(
    {
        "relu", "gelu", "silu", "tanh", "sigmoid", "softmax", "log_softmax", "logsigmoid", "normalize", "dropout",
        "layer_norm", "exp", "log", "abs", "neg", "sqrt", "rsqrt", "square", "clamp", "clone", "detach", "round",
        "floor", "ceil", "sign", "nan_to_num", "leaky_relu", "elu", "softplus", "linear",
    }
)  # fmt: skip
"""Their result has as many rows as their first argument; of ``linear`` the last dimension is another."""

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
    if name.startswith(_RANDOM):
        return drawn_by_process(run, node, name, arguments)
    if name in _QUEUE_STATE:
        return Unknown(Sameness.DATA, run.origin(node, Sameness.DATA), decides=True)
    if name in _CLOCKS or name in _DEVICE_STATE:
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
        if shape is Sameness.DATA:
            # Seeded alike or not: tensors of different sizes are different ones.
            return Unknown(shape, origin_of(*given), shape=shape, dtype=dtype, length=_rows(given))
        return Unknown(Sameness.UNKNOWN, shape=shape, dtype=dtype)
    if name in ("torch.zeros", "torch.ones", "torch.empty", "torch.full"):
        return Unknown(
            max((item.sameness for item in arguments), default=Sameness.SAME),
            origin_of(*arguments),
            shape=_shape_from(arguments[: 1 if last == "full" else len(node.args)]),
            dtype="" if last == "full" else _dtype_of(node, "float32"),
        )
    if name in _STACKS and node.args and arguments:
        run.none_used(arguments[0], node.args[0])
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
    if last in _ELEMENTWISE and arguments and name.startswith("torch."):
        first = arguments[0]
        if isinstance(first, Unknown) and isinstance(first.shape, Sameness) and first.shape.varies:
            return elementwise(first)
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
