"""Which expressions make something with parameters (torch 2.13.0, `torch/nn/modules`)."""

from __future__ import annotations

import ast
from typing import Final

from ranksafe.semantics.module import Module

_LAYERS: Final = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Linear", "Bilinear", "LazyLinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d",
        "ConvTranspose3d", "Embedding", "EmbeddingBag", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm",
        "LayerNorm", "GroupNorm", "RMSNorm", "PReLU", "RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell",
        "MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer",
    )
)  # fmt: skip
"""Layers that have parameters which are trained, unless an argument of `_WITHOUT` says otherwise."""
_WITHOUT: Final = frozenset({"affine", "elementwise_affine", "_freeze", "bias", "device"})
"""Arguments with which some of them may have none, or none yet."""
_ALWAYS: Final = frozenset(
    {"torch.nn.Linear", "torch.nn.Conv1d", "torch.nn.Conv2d", "torch.nn.Conv3d"}
)
"""Those that have a weight whether they have a bias or not."""
_CONTAINERS: Final = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList"})
_PARAMETERS: Final = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})


def has_parameters(module: Module, expression: ast.expr) -> bool:
    """Whether an expression certainly makes a layer, a sequence of layers or a parameter that is trained, and that
    nothing else has."""
    expression = _only_here(module, expression)
    if not isinstance(expression, ast.Call):
        return False
    name = module.qualified_name(expression.func)
    given = {keyword.arg for keyword in expression.keywords}
    if None in given:
        return False
    if name in _PARAMETERS:
        return "requires_grad" not in given and len(expression.args) == 1
    if name in _LAYERS:
        return not given & (_WITHOUT - {"bias"} if name in _ALWAYS else _WITHOUT)
    if name in _CONTAINERS:
        parts = list(expression.args)
        display = _only_here(module, parts[0]) if len(parts) == 1 else None
        if isinstance(display, (ast.List, ast.Tuple)):
            parts = display.elts
        return any(has_parameters(module, part) for part in parts)
    return False


def _only_here(module: Module, expression: ast.expr) -> ast.expr:
    """What a name stands for, where nothing else reads it."""
    if not isinstance(expression, ast.Name) or len(module.loads_of_same_name(expression)) != 1:
        return expression
    return module.values(expression).only_expression() or expression
