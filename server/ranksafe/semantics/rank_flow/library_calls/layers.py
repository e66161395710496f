"""Layers of models: what goes through one has as many rows afterwards, and mostly the other dimensions too."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.values import Sameness, Unknown, Value, combined

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module

_LAYERS = "torch.nn."
_KEEP = frozenset(
    {
        "Linear", "Embedding", "Identity", "Dropout", "AlphaDropout", "LayerNorm", "RMSNorm", "ReLU", "ReLU6", "GELU",
        "SiLU", "Mish", "Tanh", "Sigmoid", "LogSigmoid", "Softmax", "LogSoftmax", "Softplus", "LeakyReLU", "ELU",
        "SELU", "CELU", "PReLU", "Hardtanh", "Hardswish", "Hardsigmoid", "Softsign", "GLU", "BatchNorm1d",
        "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d",
        "InstanceNorm3d", "Dropout1d", "Dropout2d", "Dropout3d",
    }
)  # fmt: skip
"""All dimensions but the last one stay (torch 2.13.0, nn/modules)."""
_BY_ROWS = frozenset(
    {
        "Sequential", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
        "MaxPool1d", "MaxPool2d", "MaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "AdaptiveAvgPool1d",
        "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "Upsample", "Bilinear",
        "EmbeddingBag", "Unflatten", "PixelShuffle",
    }
)  # fmt: skip
"""The rows stay, what a row looks like does not."""


def has_uneven_shape(value: Value) -> bool:
    """Whether a tensor is known to have another shape on other ranks."""
    return isinstance(value, Unknown) and isinstance(value.shape, Sameness) and value.shape.varies


def has_uneven_rows(value: Value) -> bool:
    """Whether a tensor is known to have another number of rows on other ranks."""
    return has_uneven_shape(value) and isinstance(value, Unknown) and value.length.varies


def by_rows(given: Value, made: Unknown) -> Unknown:
    """What was made of each row of a tensor: as many rows as went in."""
    if not has_uneven_rows(given):
        return made
    assert isinstance(given, Unknown)
    return replace(made, shape=given.shape, length=given.length, origin=given.origin or made.origin)


def through_layer(module: Module, layer: ast.expr, given: Value) -> Unknown | None:
    """What a layer of torch makes of a tensor whose shape differs; None for other calls.

    ``layer`` is what is called: ``self.proj``, or the construction of the layer itself.
    """
    if not has_uneven_shape(given):
        return None
    assert isinstance(given, Unknown)
    type_ = module.type_of(layer)
    if type_ is None or not type_.startswith(_LAYERS):
        return None
    last = type_.rpartition(".")[2]
    if last in _KEEP:
        return replace(combined(given), shape=given.shape, length=given.length)
    return by_rows(given, combined(given)) if last in _BY_ROWS else None
