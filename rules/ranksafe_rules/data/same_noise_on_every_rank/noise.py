"""Random tensors that a training step draws, and the seeds that they follow from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.structure import Function

from ranksafe_rules._shared.loops import loops_around
from ranksafe_rules._shared.loss_inputs import without_gradients
from ranksafe_rules._shared.rank_words import asks_for_the_rank
from ranksafe_rules._shared.trails.functions import called, class_of
from ranksafe_rules.data.seeding import SEEDING

SEEDS_TORCH: Final = (
    "torch.manual_seed", "torch.random.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all",
    "torch.cuda.random.manual_seed", "torch.cuda.random.manual_seed_all", "accelerate.utils.set_seed",
    "transformers.set_seed",
)  # fmt: skip
"""Read in torch 2.13.0 (``manual_seed`` seeds the GPUs, too), accelerate 1.15.0 and transformers 5.23.0."""
_ON_GPUS_ONLY: Final = frozenset(name for name in SEEDS_TORCH if name.startswith("torch.cuda."))
_LIKE: Final = ("torch.randn_like", "torch.rand_like")
_SIZED: Final = {"torch.randn": 0, "torch.rand": 0, "torch.randint": 2, "torch.normal": 0}
"""Where the size begins among the positional arguments; ``torch.normal`` takes tensors of means and deviations."""
_SEED: Final = re.compile("seed", re.IGNORECASE)
_RANK: Final = re.compile("rank|process_index", re.IGNORECASE)
_OF_A_RANK: Final = re.compile("rank|process_index|device_specific", re.IGNORECASE)
_PARTS_OF_A_MODEL: Final = re.compile(
    r"(sequence|tensor|context|model|pipeline|ulysses)_?parallel|device_mesh|\b(sp|cp|tp)_(size|group|rank)|broadcast\(",
    re.IGNORECASE,
)
"""Ranks that compute parts of one model on the same samples need the same noise; others may be sent theirs."""
_STEPS: Final = 2
_MOST_FUNCTIONS: Final = 40


@dataclass(frozen=True, slots=True)
class Seed:
    """A call that gives torch the same seed on all ranks."""

    call: ast.Call
    of_gpus_only: bool
    """Whether nothing in the file seeds the generator of the CPU."""


def seeds_alike(module: Module) -> Seed | None:
    """The call that gives torch the same seed on all ranks; None where the file also seeds by rank, or may do."""
    if module.code_says(_may_seed_by_rank):
        return None
    found = []
    for name in sorted(SEEDING):
        for call in module.calls_written(name):
            if any(asks_for_the_rank(module, item) for item in call.args):
                return None
            if any(word.arg in (None, "device_specific") for word in call.keywords):
                return None
            seeded = _seeding_of_torch(module, call) if _is_outermost(module, call) else set()
            if seeded:
                found.append(Seed(call, all(name in _ON_GPUS_ONLY for name in seeded)))
    first = min(found, key=lambda seed: module.order_of(seed.call), default=None)
    if first is None:
        return None
    return Seed(first.call, all(seed.of_gpus_only for seed in found))


def drawn_in_training(module: Module, seed: Seed) -> Iterator[tuple[Module, ast.Call]]:
    """The random tensors of a training step: what is drawn in the loop, or else the function, that goes backward, and
    in the functions that are called there; each with its file.

    Not what is drawn without gradients: samples to look at; nor what a seed of GPUs says nothing of.
    """
    seen: set[int] = set()
    for backward in module.calls_written("backward"):
        region: ast.AST | None = next(
            loops_around(module, backward), module.enclosing_function(backward)
        )
        if region is not None:
            for file, draw in _drawn(module, region, _STEPS, seen):
                if not (seed.of_gpus_only and _is_on_the_cpu(file, draw)):
                    yield file, draw


def _is_on_the_cpu(module: Module, draw: ast.Call) -> bool:
    """Whether torch draws from the generator of the CPU: the call names no device."""
    is_sized = module.qualified_name(draw.func) in _SIZED
    return is_sized and all(word.arg != "device" for word in draw.keywords)


def _drawn(
    module: Module, region: ast.AST, steps: int, seen: set[int]
) -> Iterator[tuple[Module, ast.Call]]:
    if id(region) in seen or len(seen) > _MOST_FUNCTIONS:
        return
    seen.add(id(region))
    for call in module.calls(*_LIKE, *_SIZED, inside=region):
        if _is_noise(module, call) and not without_gradients(module, call):
            yield module, call
    if steps == 0:
        return
    for node in ast.walk(region):
        if isinstance(node, ast.Call) and not without_gradients(module, node):
            found = _run_by(module, node)
            if found is not None:
                yield from _drawn(*found, steps - 1, seen)


def _run_by(module: Module, call: ast.Call) -> tuple[Module, Function] | None:
    """The function that a call runs; of a module that is called, its ``forward``."""
    found = called(module, call)
    if found is not None:
        return found.module, found.function
    name = class_of(module, call.func) if isinstance(call.func, (ast.Name, ast.Attribute)) else None
    cls = module.class_named(name)
    forward = None if cls is None else module.method(cls, "forward")
    return None if forward is None else (module, forward)


def _is_noise(module: Module, call: ast.Call) -> bool:
    """Whether a call draws a tensor of more than one element, from the generator that the seed is for."""
    given = {word.arg: word.value for word in call.keywords}
    if "generator" in given or None in given:
        return False
    name = module.qualified_name(call.func)
    if name in _LIKE:
        return True
    size = [given["size"]] if "size" in given else call.args[_SIZED[name or ""] :]
    if name == "torch.randint" and len(call.args) == 2 and "size" not in given:
        size = call.args[1:]  # Without the lower bound.
    parts = [
        part
        for item in size
        for part in (item.elts if isinstance(item, (ast.Tuple, ast.List)) else [item])
    ]
    return any(not (isinstance(part, ast.Constant) and part.value == 1) for part in parts)


def _is_outermost(module: Module, call: ast.Call) -> bool:
    """Whether a call is not one of those that a function for seeding consists of."""
    function = module.enclosing_function(call)
    return function is None or "seed" not in function.name.lower()


def _seeding_of_torch(module: Module, call: ast.Call) -> set[str]:
    """The functions of torch and its kin that a call seeds with, itself or in the project's function that it runs."""
    name = module.qualified_name(call.func)
    if name in SEEDS_TORCH:
        return {name}
    found = called(module, call)
    if found is None or found.module.code_says(_may_seed_by_rank):
        return set()
    names = map(
        found.module.qualified_name,
        (seed.func for seed in found.module.calls(*SEEDS_TORCH, inside=found.function)),
    )
    return {name for name in names if name is not None}


def _may_seed_by_rank(text: str) -> bool:
    by_rank = any(
        _follow(_SEED, _OF_A_RANK, line) or _follow(_RANK, _SEED, line) for line in text.split("\n")
    )
    return by_rank or _PARTS_OF_A_MODEL.search(text) is not None


def _follow(first: re.Pattern[str], second: re.Pattern[str], line: str) -> bool:
    found = first.search(line)
    return found is not None and second.search(line, found.end()) is not None
