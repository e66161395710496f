"""What the text of a function mentions: read once, to know whether running it can matter."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow import sources
from ranksafe.semantics.rank_flow.operations import properties, words
from ranksafe.semantics.units import callee_name
from ranksafe.semantics.walking import FUNCTIONS

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module

_RANK_TEXT = frozenset(
    {
        "get_rank",
        "get_local_rank",
        "RANK",
        "LOCAL_RANK",
        "get_world_size",
        "WORLD_SIZE",
        "is_initialized",
        "process_index",
    }
)
QUESTIONS = frozenset({"exists", "isfile", "isdir", "lexists", "is_file", "is_dir"})
"""Functions and methods that ask whether a file is there."""
_CHANGES = frozenset(
    {"append", "extend", "add", "update", "pop", "popleft", "appendleft", "clear", "insert", "setdefault"}
)  # fmt: skip
"""Methods that change a collection."""
_MODELS = frozenset(
    {"DistributedDataParallel", "DDP", "FSDP", "FullyShardedDataParallel", "fully_shard", "prepare", "Accelerator"}
    | {"DataLoader", "DistributedSampler", "monotonic", "perf_counter", "time", "signal", "add_signal_handler"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mentioned:
    """What the text of a function mentions."""

    performs: bool
    looks_at_rank: bool
    branches: bool
    callees: list[ast.expr]
    references: list[ast.expr | str]
    """Functions that it hands on, keeps, or finds by name, as far as they are written as names: ``partial(step)``."""
    sets: frozenset[str]
    """Attributes of ``self`` that it assigns, or items of them."""
    reads: frozenset[str]
    """Attributes of ``self`` that it reads."""
    asks_files: bool
    """Whether it asks if a file is there."""


def mentioned_in(module: Module, node: ast.AST) -> Mentioned:
    """Read once for each version of the unit that holds the function."""
    unit = module.unit_of(node)
    if unit is None:
        return _read_words(node, module.may_wrap_models)
    wrapping = module.may_wrap_models
    kept: dict[tuple[int, bool], Mentioned] = unit.results.setdefault("rank words", {})
    found = kept.get((id(node), wrapping))
    if found is None:
        found = kept[id(node), wrapping] = _read_words(node, wrapping)
    return found


def _read_words(node: ast.AST, wrapping: bool) -> Mentioned:
    names, communicating = words(wrapping), properties()
    looks_at_rank = branches = asks_files = False
    # Lightning's training loop goes on with the backward pass of what it returns.
    performs = wrapping and getattr(node, "name", "") == "training_step"
    callees: list[ast.expr] = []
    references: list[ast.expr | str] = []
    sets: set[str] = set()
    reads: set[str] = set()
    for item in ast.walk(node):
        if isinstance(item, ast.Call):
            name = callee_name(item)
            if name in names:
                performs = True
            elif name in _MODELS or name in _RANK_TEXT:
                looks_at_rank = True
            asks_files = asks_files or name in QUESTIONS
            if name in _CHANGES and isinstance(item.func, ast.Attribute):
                held = item.func.value
                if isinstance(held, ast.Attribute) and getattr(held.value, "id", "") == "self":
                    sets.add(held.attr)
            callees.append(item.func)
            references += _handed_on((*item.args, *(keyword.value for keyword in item.keywords)))
            if isinstance(item.func, ast.Subscript):
                references.append(item.func.value)
            if name == "getattr" and len(item.args) > 1:
                named = getattr(item.args[1], "value", None)
                references += [named] if isinstance(named, str) else []
        elif isinstance(item, ast.If):
            branches = True
        elif isinstance(item, ast.Assign):
            references += _handed_on([item.value])
        elif isinstance(item, (ast.List, ast.Tuple)) and isinstance(item.ctx, ast.Load):
            references += _handed_on(item.elts)
        elif isinstance(item, ast.Dict):
            references += _handed_on(item.values)
        elif isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
            references += _handed_on(item.decorator_list)
        elif isinstance(item, ast.Attribute):
            if getattr(item.value, "id", "") == "self":
                (sets if isinstance(item.ctx, ast.Store) else reads).add(item.attr)
            if wrapping and item.attr in communicating:
                performs = True
            if sources.is_rank_word(item.attr) or item.attr in _RANK_TEXT:
                looks_at_rank = True
        elif isinstance(item, ast.Subscript):
            held = item.value
            if isinstance(item.ctx, ast.Store) and isinstance(held, ast.Attribute):
                if getattr(held.value, "id", "") == "self":
                    sets.add(held.attr)
        elif isinstance(item, (ast.Name, ast.arg)):
            word = item.id if isinstance(item, ast.Name) else item.arg
            if sources.is_rank_word(word):
                looks_at_rank = True
        elif isinstance(item, ast.Constant) and item.value.__class__ is str:
            if item.value in _RANK_TEXT:
                looks_at_rank = True
    return Mentioned(
        performs,
        looks_at_rank,
        branches,
        callees,
        references,
        frozenset(sets),
        frozenset(reads),
        asks_files,
    )


def _handed_on(nodes: Iterable[ast.expr]) -> Iterator[ast.expr]:
    for node in nodes:
        if isinstance(node, ast.IfExp):
            yield from _handed_on((node.body, node.orelse))
        elif isinstance(node, ast.Subscript):
            yield from _handed_on((node.value,))
        elif isinstance(node, (ast.Name, ast.Attribute)):
            yield node


def declared_in(function: ast.AST, kind: type[ast.Global | ast.Nonlocal]) -> frozenset[str]:
    """Names that a function declares to be those of its file, or of the function around it."""
    body = function.body if isinstance(function, FUNCTIONS) else []
    return frozenset(
        name for statement in body if isinstance(statement, kind) for name in statement.names
    )
