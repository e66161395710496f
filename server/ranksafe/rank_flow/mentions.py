"""What the text of a function mentions: read once, to know whether running it can matter."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ranksafe.rank_flow import sources
from ranksafe.rank_flow.operations import properties, words
from ranksafe.rank_flow.syntax import last_segment, parameter_names
from ranksafe.semantics.module import Module

_RANK_TEXT = frozenset(
    {
        "get_rank",
        "RANK",
        "LOCAL_RANK",
        "get_world_size",
        "WORLD_SIZE",
        "is_initialized",
        "process_index",
    }
)
_MODELS = frozenset(
    {"DistributedDataParallel", "DDP", "FSDP", "FullyShardedDataParallel", "fully_shard", "prepare", "Accelerator"}
    | {"DataLoader", "DistributedSampler", "monotonic", "perf_counter", "time"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mentioned:
    """What the text of a function mentions."""

    performs: bool
    looks_at_rank: bool
    branches: bool
    callees: list[ast.expr]


def mentioned_in(module: Module, node: ast.AST) -> Mentioned:
    """Read once for each version of the unit that holds the function."""
    wrapping = module.may_wrap_models
    unit = module.unit_of(node)
    if unit is None:
        return _read(_by_kind(node), wrapping)
    kept: dict[tuple[int, bool], Mentioned] = unit.results.setdefault("rank words", {})
    found = kept.get((id(node), wrapping))
    if found is None:
        whole = (
            len(unit.nodes) == 1 and unit.nodes[0] is node and not isinstance(node, ast.ClassDef)
        )
        found = _read(unit.by_kind if whole else _by_kind(node), wrapping)
        kept[id(node), wrapping] = found
    return found


def _by_kind(node: ast.AST) -> dict[type[ast.AST], list[ast.AST]]:
    found: dict[type[ast.AST], list[ast.AST]] = {}
    for item in ast.walk(node):
        found.setdefault(item.__class__, []).append(item)
    return found


def _read(by_kind: Mapping[type[ast.AST], list[Any]], wrapping: bool) -> Mentioned:
    callees = [call.func for call in by_kind.get(ast.Call, ())]
    called = {last_segment(callee) for callee in callees}
    read = {item.attr for item in by_kind.get(ast.Attribute, ())}
    named = {item.id for item in by_kind.get(ast.Name, ())}
    for kind in (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda):
        for function in by_kind.get(kind, ()):
            named.update(parameter_names(function.args))
    texts = {item.value for item in by_kind.get(ast.Constant, ()) if item.value.__class__ is str}
    return Mentioned(
        performs=not called.isdisjoint(words(wrapping))
        or (wrapping and not read.isdisjoint(properties())),
        looks_at_rank=not (called | read | texts).isdisjoint(_RANK_TEXT)
        or not called.isdisjoint(_MODELS)
        or any(map(sources.is_rank_word, read | named)),
        branches=ast.If in by_kind,
        callees=callees,
    )
