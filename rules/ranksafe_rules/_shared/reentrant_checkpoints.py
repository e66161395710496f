"""Reentrant activation checkpointing in the classes of a model."""

from __future__ import annotations

import ast
from typing import Final

from ranksafe.semantics.module import Module

CHECKPOINT: Final = frozenset(
    {"torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential"}
)
"""Reentrant unless they are told otherwise (torch 2.13.0 ``utils/checkpoint.py``)."""
_MAXIMUM_CLASSES: Final = 20


def is_reentrant_checkpoint(module: Module, call: ast.Call) -> bool:
    """Whether a call checkpoints reentrantly, by its arguments or because it is not told otherwise."""
    if module.qualified_name(call.func) not in CHECKPOINT:
        return False
    given = module.argument(call, "use_reentrant")
    return given is None or given.only_constant() is True


def classes_of(module: Module, cls: ast.ClassDef) -> list[ast.ClassDef]:
    """A model's class, its bases and the classes that it is built of, as far as they are in this file."""
    found: list[ast.ClassDef] = []
    pending = [cls]
    while pending and len(found) < _MAXIMUM_CLASSES:
        current = pending.pop()
        if current in found:
            continue
        found.append(current)
        for name in module.nodes(ast.Name, inside=current):
            assert isinstance(name, ast.Name)
            mentioned = module.class_named(module.qualified_name(name))
            if mentioned is not None:
                pending.append(mentioned)
    return found
