"""Where a dataset of Hugging Face datasets was loaded."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.units import callee_name

from ranksafe_rules._shared.origins import makers

_LOAD: Final = frozenset({"datasets.load_dataset", "datasets.load_from_disk"})
_SAME: Final = frozenset(
    {"map", "filter", "shuffle", "with_format", "remove_columns", "rename_column", "rename_columns", "take", "skip"}
    | {"select_columns", "batch", "cast", "cast_column", "with_transform", "select", "sort", "train_test_split"}
)  # fmt: skip
"""Methods of datasets.Dataset and datasets.IterableDataset (5.2.0) that give the same data, changed or a part of it."""
_MAXIMUM_DEPTH: Final = 6


def loading_calls(
    module: Module, dataset: ast.expr, depth: int = _MAXIMUM_DEPTH
) -> Iterator[ast.Call]:
    """The calls such as ``load_dataset(…)`` that may stand at the beginning of a chain of methods and variables."""
    if depth == 0:
        return
    if isinstance(dataset, ast.Subscript):
        yield from loading_calls(module, dataset.value, depth - 1)
        return
    for call in makers(module, dataset):
        if module.qualified_name(call.func) in _LOAD:
            yield call
        elif isinstance(call.func, ast.Attribute) and callee_name(call) in _SAME:
            yield from loading_calls(module, call.func.value, depth - 1)
    if isinstance(dataset, ast.Name):
        for assigned in module.flow.assigned_values(dataset):
            if isinstance(assigned, ast.Subscript):
                yield from loading_calls(module, assigned, depth - 1)
