"""The line of a script over which the lenses of a run stand."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ranksafe.lsp.history import shifted_range
from ranksafe.lsp.lines import TouchedLines
from ranksafe.semantics.facts import is_main_guard
from ranksafe.source.position import Range

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a script starts its work."""

    range: Range
    """One line of the code there."""

    def shifted(self, touched: TouchedLines) -> Entry:
        """The entry after an edit."""
        return Entry(shifted_range(self.range, touched))


def find_entry(module: Module) -> Entry | None:
    """The main guard, else the first ``trainer.train()``, else the first ``accelerator.prepare(...)``, else the first
    ``backward()`` of a script that trains as it is read."""
    for node in _candidates(module):
        return Entry(module.range_of(node))
    return None


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
