"""Batch samplers into which Lightning cannot put a sampler of its own."""

from __future__ import annotations

import ast
from enum import Enum
from typing import Final

from ranksafe.semantics.module import Module

_BATCH_SAMPLER: Final = ("torch.utils.data.BatchSampler", "torch.utils.data.sampler.BatchSampler")
_PLAIN_BASES: Final = frozenset(
    {
        "torch.utils.data.Sampler",
        "torch.utils.data.sampler.Sampler",
        "builtins.object",
        "typing.Generic",
        "typing.Iterable",
        "collections.abc.Iterable",
    }
)
_HOLDERS: Final = ("LightningModule", "LightningDataModule")
_PACKAGES: Final = ("pytorch_lightning", "lightning", "lightning.pytorch")
_OWNERS: Final = tuple(f"{package}.{name}" for package in _PACKAGES for name in _HOLDERS)
_HOOKS: Final = frozenset({"train_dataloader", "val_dataloader", "test_dataloader"})
_REBUILT: Final = ("batch_size", "drop_last")
"""A batch sampler that has both is built anew as ``Class(sampler, batch_size=..., drop_last=...)``."""


class Obstacle(Enum):
    """Why a batch sampler cannot be built anew."""

    NO_BATCH_SAMPLER = "no-batch-sampler"
    NO_SAMPLER_ARGUMENT = "no-sampler-argument"


def obstacle(module: Module, loader: ast.Call) -> tuple[ast.ClassDef, Obstacle] | None:
    """The class of the batch sampler that a DataLoader of a Lightning hook gets, and what is wrong with it."""
    hook = module.enclosing_function(loader)
    holder = None if hook is None else module.parent(hook)
    if hook is None or hook.name not in _HOOKS or not isinstance(holder, ast.ClassDef):
        return None
    if not module.is_subclass(module.class_name(holder), *_OWNERS):
        return None
    given = module.argument_node(loader, "batch_sampler", 4)
    cls = None if given is None else module.class_named(module.type_of(given))
    if given is None or cls is None:
        return None
    if module.is_subclass(module.class_name(cls), *_BATCH_SAMPLER):
        here = all(
            module.enclosing_function(each.node) is hook for each in module.values(given).known
        )
        return (cls, Obstacle.NO_SAMPLER_ARGUMENT) if here and _lacks_sampler(module, cls) else None
    bases = {module.types.base_name(base) for base in cls.bases}
    if not bases <= _PLAIN_BASES or all(_has(module, cls, name) for name in _REBUILT):
        return None
    return cls, Obstacle.NO_BATCH_SAMPLER


def _lacks_sampler(module: Module, cls: ast.ClassDef) -> bool:
    constructor = module.method(cls, "__init__")
    if constructor is None:
        return False
    arguments = constructor.args
    names = {item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    return "sampler" not in names and arguments.kwarg is None and arguments.vararg is None


def _has(module: Module, cls: ast.ClassDef, name: str) -> bool:
    """Whether objects of a class have an attribute."""
    if module.attribute_stores(cls, name) or module.has_method(cls, name):
        return True
    return any(
        isinstance(target, ast.Name) and target.id == name
        for statement in cls.body
        if isinstance(statement, (ast.Assign, ast.AnnAssign))
        for target in (
            statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        )
    )
