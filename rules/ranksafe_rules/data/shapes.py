"""Sizes of arrays and tensors that are written in the source."""

from __future__ import annotations

import ast
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.origins import makers

_TENSOR_DATASET: Final = "torch.utils.data.TensorDataset"
_SHAPED: Final = frozenset(
    {"zeros", "ones", "empty", "full", "randn", "rand", "randint", "normal", "uniform"}
)
_LEADING: Final = frozenset({"zeros", "ones", "empty", "full"})
_ARRAYS: Final = frozenset({"numpy", "numpy.random", "jax.numpy", "jax.random", "torch"})


def rows_of_dataset(module: Module, dataset: ast.expr) -> int | None:
    """Samples of a TensorDataset over tensors of a written size, else None."""
    sizes = {
        rows_of_array(module, maker.args[0])
        if maker.args and module.qualified_name(maker.func) == _TENSOR_DATASET
        else None
        for maker in makers(module, dataset)
    }
    return sizes.pop() if len(sizes) == 1 else None


def rows_of_array(module: Module, array: ast.expr) -> int | None:
    """The first dimension of an array or tensor made by a factory function with a written shape, else None."""
    sizes = {_rows_made_by(module, maker) for maker in makers(module, array)}
    return sizes.pop() if len(sizes) == 1 else None


def _rows_made_by(module: Module, call: ast.Call) -> int | None:
    name = module.qualified_name(call.func) or ""
    package, _, function = name.rpartition(".")
    if package not in _ARRAYS:
        return None
    if function in ("array", "asarray", "tensor") and call.args:
        first = call.args[0]
        return len(first.elts) if isinstance(first, (ast.List, ast.Tuple)) else None
    if function == "arange" and len(call.args) == 1:
        return _whole(module, call.args[0])
    if function not in _SHAPED:
        return None
    for keyword in call.keywords:
        if keyword.arg in ("shape", "size"):
            return _first_of_shape(module, keyword.value)
    for position in _shape_positions(package, function):
        if position < len(call.args):
            return _first_of_shape(module, call.args[position])
    return None


def _shape_positions(package: str, function: str) -> tuple[int, ...]:
    """Where the shape stands: first for ``zeros``, after the key for ``jax.random``, last for ``torch.randint``."""
    if package == "jax.random":
        return (1,)
    if function == "randint":
        return (2, 1) if package == "torch" else ()
    return (0,) if function in _LEADING or function in ("randn", "rand") else ()


def _first_of_shape(module: Module, shape: ast.expr) -> int | None:
    for value in module.values(shape).known:
        if isinstance(value.node, (ast.Tuple, ast.List)):
            return _whole(module, value.node.elts[0]) if value.node.elts else None
    return _whole(module, shape)


def _whole(module: Module, node: ast.expr) -> int | None:
    number = module.values(node).only_constant()
    return number if isinstance(number, int) and not isinstance(number, bool) else None
