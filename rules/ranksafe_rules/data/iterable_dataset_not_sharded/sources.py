"""Datasets that are iterated over, and whether they give each rank a share."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.units import callee_name

from ranksafe_rules._shared.origins import makers
from ranksafe_rules.data.loaded_datasets import loading_calls
from ranksafe_rules.data.wholes import ITERABLE, speaks_of_ranks

_RANDOM: Final = frozenset(
    {
        "rand",
        "randn",
        "randint",
        "random",
        "uniform",
        "normal",
        "choice",
        "choices",
        "sample",
        "integers",
        "randrange",
    }
)


class Kind(Enum):
    """Who made the dataset's class."""

    OWN = "own"
    STREAM = "stream"


@dataclass(frozen=True, slots=True)
class Source:
    """The construction of a dataset of which every rank reads everything."""

    kind: Kind
    call: ast.Call
    iteration: tuple[Module, ast.AST] | None
    """The ``__iter__`` that splits nothing."""


def source_of(module: Module, dataset: ast.expr) -> Source | None:
    """Where a loader's dataset is made, if it is an iterable one that is the same for all ranks."""
    if speaks_of_ranks(dataset):
        return None
    stream = _stream(module, dataset)
    if stream is not None:
        return Source(Kind.STREAM, stream, None)
    made = list(makers(module, dataset))
    if len(made) != 1 or speaks_of_ranks(made[0]):
        return None
    name = module.type_of(made[0])
    found = _iteration(module, name) if module.is_subclass(name, ITERABLE) else None
    return None if found is None else Source(Kind.OWN, made[0], found)


def _stream(module: Module, dataset: ast.expr) -> ast.Call | None:
    """``load_dataset(..., streaming=True)`` at the beginning of a chain of methods."""
    for call in loading_calls(module, dataset):
        streaming = module.argument(call, "streaming")
        if streaming is not None and streaming.only_constant() is True:
            return None if speaks_of_ranks(call) else call
    return None


def _iteration(module: Module, name: str | None) -> tuple[Module, ast.AST] | None:
    """The ``__iter__`` of a class none of whose code speaks of ranks, and that draws no random samples."""
    place, cls = module, module.class_named(name)
    if cls is None and name is not None:
        found = module.project_definition(name)
        if found is None or not isinstance(found[1], ast.ClassDef):
            return None
        place, cls = found[0], found[1]
    if cls is None or any(speaks_of_ranks(item) for item in place.body_of(cls)):
        return None
    if not all(place.qualified_name(base) == ITERABLE for base in cls.bases):
        return None
    method = place.method(cls, "__iter__")
    return None if method is None or _draws_samples(place, cls) else (place, method)


def _draws_samples(module: Module, cls: ast.ClassDef) -> bool:
    """Whether samples are drawn at random: then ranks with their own random numbers have their own samples."""
    return any(
        isinstance(call, ast.Call) and callee_name(call) in _RANDOM
        for call in module.nodes(ast.Call, cls)
    )


def can_be_split(module: Module, dataset: ast.expr) -> bool:
    """Whether a call that splits the dataset can be written where it is used."""
    return isinstance(dataset, (ast.Name, ast.Attribute)) and distributed_name(module) is not None


def distributed_name(module: Module) -> str | None:
    """How the file writes ``torch.distributed``, where it sets up the process group."""
    for call in module.calls("torch.distributed.init_process_group"):
        if isinstance(call.func, ast.Attribute):
            return module.text_of(call.func.value)
    return None
