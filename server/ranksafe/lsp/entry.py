"""The line of a script over which the lenses of a run stand."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ranksafe.checker.analysis import RELEVANT
from ranksafe.lsp.history import shifted_range
from ranksafe.semantics.facts import is_main_guard
from ranksafe.semantics.module import Module
from ranksafe.source.position import Range
from ranksafe.source.recovery import parse_tolerantly
from ranksafe.source.text import SourceText

if TYPE_CHECKING:
    from ranksafe.lsp.lines import TouchedLines


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a script starts its work."""

    range: Range

    def shifted(self, touched: TouchedLines) -> Entry:
        """The entry after an edit."""
        return Entry(shifted_range(self.range, touched))


def find_entry(module: Module | None, path: Path | None, text: str) -> Entry | None:
    """The main guard, else the first ``trainer.train()``, else the first ``accelerator.prepare(...)``, else the first
    ``backward()`` of a script that trains as it is read.

    ``module``: what the analysis made of the text; None when no rule concerns it, which says nothing of its entry.
    """
    module = module or _module_of(path, text)
    if module is None:
        return None
    for node in _candidates(module):
        return Entry(module.range_of(node))
    return None


def _module_of(path: Path | None, text: str) -> Module | None:
    if RELEVANT.search(text) is None:
        return None
    parsed = parse_tolerantly(text)
    if parsed is None:
        return None
    module = Module(SourceText(text), "script", None if path is None else str(path))
    module.fill(parsed.tree)
    return module


def _candidates(module: Module) -> Iterator[ast.AST]:
    for node in module.nodes(ast.If):
        if isinstance(node, ast.If) and is_main_guard(node.test):
            yield node
    yield from module.method_calls("train", "transformers.Trainer")
    yield from module.method_calls("prepare", "accelerate.Accelerator")
    if module.facts.is_entry:
        for node in module.nodes(ast.Call):
            callee = node.func if isinstance(node, ast.Call) else None
            if isinstance(callee, ast.Attribute) and callee.attr == "backward":
                yield node
