"""Tensors with as many rows as the data makes them: masks, ``nonzero``, ``unique``; and what asks how many that are."""

from __future__ import annotations

import ast
from dataclasses import replace

from ranksafe.semantics.rank_flow.library_calls.layers import has_uneven_shape
from ranksafe.semantics.rank_flow.library_calls.padded_batches import tokens_of
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    Known,
    Sameness,
    Thing,
    Unknown,
    Value,
    combined,
)

_FUNCTIONS = frozenset(
    {
        "torch.nonzero", "torch.masked_select", "torch.unique", "torch.argwhere", "numpy.nonzero",
        "torch.unique_consecutive", "numpy.unique", "numpy.flatnonzero", "numpy.argwhere",
    }
)  # fmt: skip
_COUNTS = frozenset({"torch.bincount", "numpy.bincount"})
"""Without ``minlength``, as long as the largest number among the data."""
_WHERE = frozenset({"torch.where", "numpy.where"})
_TUPLES = frozenset({"torch.where", "numpy.where", "numpy.nonzero"})
_STRUCTURAL = frozenset(
    {
        "torch.is_tensor", "torch.is_floating_point", "torch.is_complex", "numpy.ndim", "numpy.isscalar",
        "torch.is_storage", "numpy.shape", "torch.numel", "numpy.size",
    }
)  # fmt: skip
"""What they say of tensors of different data usually is the same."""


def of_selection(node: ast.Call, name: str, arguments: list[Value]) -> Value | None:
    """What a function returns that selects; None for other calls."""
    if name in _STRUCTURAL:
        return NOTHING_KNOWN
    if name in _COUNTS:
        counts = any(item.arg == "minlength" for item in node.keywords) or len(node.args) > 2
        return None if counts else selected(node, combined(*arguments))
    if name in _FUNCTIONS or (name in _WHERE and len(arguments) == 1):
        return selected(node, combined(*arguments), by_axis=name in _TUPLES)
    return None


def selected(node: ast.Call, found: Unknown, *, by_axis: bool = False) -> Unknown:
    """The indices or items where a tensor that differs is true, or not zero; one tensor for each axis if asked for."""
    if found.sameness is not Sameness.DATA:
        return found
    rows = replace(found, shape=Sameness.DATA, length=Sameness.DATA)
    asked = any(
        item.arg == "as_tuple" and isinstance(item.value, ast.Constant) and bool(item.value.value)
        for item in node.keywords
    )
    return replace(found, each=rows) if by_axis or asked else rows


def one_axis(base: Unknown, index: Value) -> Unknown | Thing | None:
    """``torch.where(mask)[0]``; None for other subscripts."""
    tokens = tokens_of(base, index)
    if tokens is not None:
        return tokens
    if isinstance(base.each, Thing) and base.each.kind == "wrapped":
        # One of several layers that are sharded alike.
        return base.each
    uneven = isinstance(base.each, Unknown) and (
        base.each.length.varies or has_uneven_shape(base.each)
    )
    if uneven and isinstance(base.each, Unknown) and base.share is None:
        return base.each if isinstance(index, Known) else None
    return None


def asks_rows(node: ast.Subscript) -> ast.expr | None:
    """The tensor in ``tensor.shape[0]``; None for other subscripts."""
    first = isinstance(node.slice, ast.Constant) and node.slice.value == 0
    if first and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        return node.value.value
    return None


def rows_of(value: Value) -> Value:
    """How many rows a tensor has, where that differs."""
    if isinstance(value, Unknown) and value.length.varies and value.steps is None:
        return Unknown(value.length, value.origin)
    return NOTHING_KNOWN


def in_place(word: str) -> bool:
    """Whether a method of this name changes its tensor."""
    return word.endswith("_") and not word.endswith("__") and word != "requires_grad_"
