"""The edit that gives every replica its share of `num_items_in_batch` (used by fix modules only).

Run on transformers 4.46.3, 4.49.0, 4.50.3, 4.51.3 and 4.56.2 with two emulated replicas: all replicas work, and the
loss equals that of one device. From 4.57.0 on the library scales by itself, so the edit must not be offered there.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.fixes.imports import import_name
from ranksafe.fixes.statements import insert_at_start
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules._shared.trainer_methods import takes_count_by_name

_CODE = """
if {self}.args.n_gpu > 1 and num_items_in_batch is not None:
    # transformers < 4.57: one count per replica, so that the mean over replicas is the global mean
    count = {torch}.as_tensor(num_items_in_batch, device={self}.args.device).reshape(-1)[:1]
    num_items_in_batch = (count / {self}.args.n_gpu).repeat({self}.args.n_gpu)
"""


def scaling_code(self_name: str, torch: str) -> str:
    """The statements, with the names that the file gives to ``self`` and torch."""
    return _CODE.format(self=self_name, torch=torch)


def scale_count(
    module: Module, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> Sequence[Edit] | None:
    """Insert the scaling at the start of a `compute_loss`; None when it has no parameter `num_items_in_batch`."""
    self_name = module.self_name(function)
    if self_name is None or not takes_count_by_name(function):
        return None
    torch, edits = import_name(module, "torch")
    inserted = insert_at_start(module, function, scaling_code(self_name, torch))
    return None if inserted is None else [*edits, inserted]
