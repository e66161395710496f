"""Questions to the file system, and branches on them in which one rank makes what the others ask for.

The first rank finds the file missing, writes it and waits; whoever asks later finds it and does not wait.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.traces import (
    Branch,
    Call,
    Decision,
    Event,
    Item,
    Loop,
    Passed,
    events_in,
)
from ranksafe.semantics.rank_flow.values import NOTHING_KNOWN, OfFile, Unknown, Value
from ranksafe.semantics.units import callee_name

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module

_QUESTIONS = frozenset(
    {"os.path.exists", "os.path.isfile", "os.path.isdir", "os.path.lexists", "os.access"}
)
_METHODS = frozenset({"exists", "is_file", "is_dir", "is_symlink"})
_MAKES = (
    "write", "save", "dump", "store", "copy", "rename", "replace", "download", "compile", "touch", "symlink", "build",
    "tokenize", "preprocess", "extract", "to_csv", "to_parquet", "to_json",
)  # fmt: skip
_SAYS = frozenset({"print", "info", "debug", "warning", "error", "log", "print0"})
_HUB = frozenset({"snapshot_download", "hf_hub_download", "load_dataset", "from_pretrained"})
"""They keep what they download in a cache of their own."""
_READS = ("load", "read", "get_", "is_", "exists", "isfile", "isdir", "join", "len", "str", "path")
_NO_PATHS = frozenset(
    {"self", "os", "dist", "torch", "json", "Path", "open", "print", "pickle", "shutil"}
)
_DIRECT = (OfFile.THERE, OfFile.MISSING)


def asked(node: ast.Call, name: str | None) -> Value | None:
    """What ``os.path.exists(path)`` and ``path.exists()`` return; None for other calls."""
    method = isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS
    if name in _QUESTIONS or (method and not node.args and (name is None or "." in name)):
        return replace(NOTHING_KNOWN, file=OfFile.THERE)
    return None


def negated(value: Unknown) -> Unknown:
    """``not value``"""
    if value.file is OfFile.EITHER or value.file is None:
        return value
    there = value.file is OfFile.THERE
    return replace(value, file=OfFile.MISSING if there else OfFile.THERE)


def races(branch: Branch, before: list[Item], rest: list[Item]) -> bool:
    """Whether the ranks for which a file is missing let one of them make it, and wait for all.

    `before` and `rest` are around the branch. Ranks that ask right after a collective ask at the same time.
    """
    condition = branch.condition
    if not isinstance(condition, Unknown) or condition.file is None:
        return False
    met = next(
        (item for item in reversed(before) if not isinstance(item, (Decision, Passed))), None
    )
    if isinstance(met, Event):
        return False
    if condition.file is OfFile.EITHER:
        arms, certainly = [arm for arm in (branch.then, branch.otherwise) if arm], True
    else:
        missing = condition.file is OfFile.MISSING
        arms, certainly = [branch.then if missing else branch.otherwise], False
    return any(
        _same_file(branch, decision, certainly=certainly)
        for arm in arms
        for decision in _before_event([*arm, *rest])
    )


def asked_too_early(items: list[Item], written: list[Decision] | None = None) -> Iterator[Branch]:
    """Branches on a file that one rank alone has written before, when nobody has waited for that rank since."""
    written = [] if written is None else written
    for item in items:
        if isinstance(item, Event):
            written.clear()
        elif isinstance(item, Decision):
            written.append(item)
        elif isinstance(item, Branch):
            condition = item.condition
            direct = isinstance(condition, Unknown) and condition.file in _DIRECT
            if direct and any(_same_file(item, each, certainly=True) for each in written):
                yield item
            other = list(written)
            yield from asked_too_early(item.then, written)
            yield from asked_too_early(item.otherwise, other)
            written[:] = [each for each in written if each in other]
        elif isinstance(item, (Call, Loop)):
            yield from asked_too_early(item.body, written)


def _before_event(items: list[Item]) -> list[Decision]:
    """The decisions of the rank on the way to the first collective."""
    found: list[Decision] = []
    pending = list(items)
    while pending:
        item = pending.pop(0)
        if isinstance(item, Event) or (isinstance(item, Branch) and any(events_in([item]))):
            return found
        if isinstance(item, Decision):
            found.append(item)
        elif isinstance(item, (Call, Loop)):
            pending = [*item.body, *pending]
    return []


def _same_file(branch: Branch, decision: Decision, *, certainly: bool) -> bool:
    """Whether one rank alone makes what a branch asks for: the path is written alike in both."""
    test = getattr(branch.place.node, "test", None)
    if not isinstance(test, ast.expr):
        return False
    asked_for = _words_of(test, branch.place.module)
    return any(
        _makes(call, certainly) and not asked_for.isdisjoint(_words_of(call, module))
        for call, module in _calls_of(decision)
    )


def _calls_of(decision: Decision) -> Iterator[tuple[ast.Call, Module]]:
    """The calls that one rank alone performs, and those on the way to its branch."""
    node, module = decision.place.node, decision.place.module
    for part in [*node.body, *node.orelse] if isinstance(node, ast.If) else [node]:
        for item in ast.walk(part):
            if isinstance(item, ast.Call):
                yield item, module
    for call, around in decision.place.calls:
        if isinstance(call, ast.Call):
            yield call, around


def _words_of(node: ast.expr, module: Module) -> set[str]:
    """What a path is written with: names, by their function, and names of files, also in what names are assigned."""
    function = id(module.enclosing_function(node))
    parts: list[ast.expr] = [node]
    for item in ast.walk(node):
        if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load):
            parts += module.flow.assigned_values(item)
    found: set[str] = set()
    for item in (item for part in parts for item in ast.walk(part)):
        if isinstance(item, ast.Name) and item.id not in _NO_PATHS:
            found.add(f"{function} {item.id}")
        elif isinstance(item, ast.Constant) and isinstance(item.value, str) and "." in item.value:
            found.add(item.value)
    return found


def _makes(call: ast.Call, certainly: bool) -> bool:
    """Whether a call makes a file: as its name says, or, unless `certainly` is asked for, as it may do."""
    word = (callee_name(call) or "").lower()
    if word in _SAYS or word in _HUB or word.startswith(_READS):
        return False
    if word == "open":
        modes = (*call.args[1:2], *(keyword.value for keyword in call.keywords))
        return any(
            isinstance(mode, ast.Constant) and bool(set(str(mode.value)) & set("wax"))
            for mode in modes
        )
    texts = [word, *(item.id.lower() for item in call.args if isinstance(item, ast.Name))]
    return not certainly or any(part in text for text in texts for part in _MAKES)
