"""The collectives that mutants are made of, and what a file's imports call them."""

from __future__ import annotations

import ast
from dataclasses import dataclass

DISTRIBUTED = frozenset(
    {
        "barrier",
        "monitored_barrier",
        "all_reduce",
        "reduce",
        "broadcast",
        "broadcast_object_list",
        "all_gather",
        "all_gather_into_tensor",
        "all_gather_object",
        "gather",
        "gather_object",
        "scatter",
        "scatter_object_list",
        "reduce_scatter",
        "reduce_scatter_tensor",
        "all_to_all",
        "all_to_all_single",
    }
)
"""Collectives of torch.distributed (torch 2.13, distributed_c10d.py)."""
ACCELERATOR = frozenset(
    {
        "gather",
        "gather_for_metrics",
        "reduce",
        "pad_across_processes",
        "wait_for_everyone",
        "backward",
    }
)
"""Methods of accelerate's Accelerator (1.15, accelerator.py) in which the ranks meet."""
ACCELERATE_UTILS = frozenset(
    {
        "gather",
        "gather_object",
        "broadcast",
        "broadcast_object_list",
        "reduce",
        "pad_across_processes",
        "wait_for_everyone",
    }
)
"""Functions of accelerate.utils (1.15, utils/operations.py and utils/other.py)."""


@dataclass
class Names:
    """What a file's imports make of names."""

    distributed: set[str]
    """Prefixes for torch.distributed, like ``dist`` and ``torch.distributed``."""
    functions: dict[str, str]
    """Names imported from torch.distributed or accelerate.utils, and from where."""
    partial_state: bool
    wrapped: bool
    """DistributedDataParallel is mentioned."""


def names_of(tree: ast.Module, text: str) -> Names:
    """Read the imports of a file."""
    names = Names(set(), {}, "PartialState" in text, "DistributedDataParallel" in text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "torch.distributed" and alias.asname:
                    names.distributed.add(alias.asname)
                elif alias.name.split(".")[0] == "torch" and not alias.asname:
                    names.distributed.add("torch.distributed")
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                local = alias.asname or alias.name
                if node.module == "torch" and alias.name == "distributed":
                    names.distributed.add(local)
                elif node.module == "torch.distributed" and alias.name in DISTRIBUTED:
                    names.functions[local] = "torch"
                elif node.module in ("accelerate.utils", "accelerate.utils.operations"):
                    if alias.name in ACCELERATE_UTILS:
                        names.functions[local] = "accelerate"
    return names


def dotted(node: ast.AST) -> str | None:
    """``a.b.c`` as it is written; None for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None
