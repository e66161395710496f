"""Models in which a batch of one sample stops BatchNorm."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.semantics.module import Module

_BATCH_NORM_1D = "torch.nn.BatchNorm1d"
_BATCH_NORM_2D = "torch.nn.BatchNorm2d"
_LINEAR = "torch.nn.Linear"
_SEQUENTIAL = "torch.nn.Sequential"
_POOLS_TO_ONE_PIXEL = "torch.nn.AdaptiveAvgPool2d"
_KEEPS_SHAPE = frozenset({"torch.nn.Conv2d", "torch.nn.ReLU", "torch.nn.Dropout2d"})
_MAXIMUM_DEPTH = 3


def normalises_single_values(
    module: Module, made_by: ast.Call, depth: int = _MAXIMUM_DEPTH
) -> bool:
    """Whether the model has a BatchNorm that gets one value per channel from each sample, so that one sample alone
    is refused: BatchNorm1d on what a Linear gives, BatchNorm2d on maps pooled to one pixel.

    A BatchNorm over sequences or larger maps has several values per channel even for one sample.
    """
    name = module.qualified_name(made_by.func)
    if name == _SEQUENTIAL:
        return _in_sequence(module, made_by, depth)
    cls = module.class_named(name)
    if cls is None or depth == 0:
        return False
    calls = [node for node in module.nodes(ast.Call, cls) if isinstance(node, ast.Call)]
    if _norm_of_linear(module, calls):
        return True
    return any(
        call is not made_by and normalises_single_values(module, call, depth - 1) for call in calls
    )


def _in_sequence(module: Module, sequence: ast.Call, depth: int) -> bool:
    previous: str | None = None
    one_pixel = False
    for given in sequence.args:
        layer = module.values(given).only_expression()
        if not isinstance(layer, ast.Call):
            previous, one_pixel = None, False
            continue
        name = module.qualified_name(layer.func)
        if name == _BATCH_NORM_1D and previous == _LINEAR:
            return True
        if name == _BATCH_NORM_2D and one_pixel:
            return True
        if name == _POOLS_TO_ONE_PIXEL:
            one_pixel = _is_one(module, layer)
        elif name not in _KEEPS_SHAPE:
            one_pixel = False
        if normalises_single_values(module, layer, depth - 1):
            return True
        previous = name
    return False


def _is_one(module: Module, pool: ast.Call) -> bool:
    size = module.argument_node(pool, "output_size", 0)
    if isinstance(size, ast.Tuple):
        return all(isinstance(item, ast.Constant) and item.value == 1 for item in size.elts)
    return size is not None and module.values(size).only_constant() == 1


def _norm_of_linear(module: Module, calls: list[ast.Call]) -> bool:
    """``self.norm = BatchNorm1d(h)`` beside ``self.fc = Linear(_, h)``, with no convolution that could feed it."""
    names = [(module.qualified_name(call.func) or "", call) for call in calls]
    if any(name.startswith(("torch.nn.Conv", "torch.nn.LazyConv")) for name, _ in names):
        return False
    widths = set(_texts(module, names, _LINEAR, "out_features", 1))
    return any(
        width in widths for width in _texts(module, names, _BATCH_NORM_1D, "num_features", 0)
    )


def _texts(
    module: Module, names: list[tuple[str, ast.Call]], wanted: str, argument: str, position: int
) -> Iterator[str]:
    for name, call in names:
        if name == wanted and isinstance(module.parent(call), (ast.Assign, ast.AnnAssign)):
            node = module.argument_node(call, argument, position)
            if node is not None:
                yield module.text_of(node)
