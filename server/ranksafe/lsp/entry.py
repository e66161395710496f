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


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a script starts its work."""

    range: Range

    def shifted(self, touched: TouchedLines) -> Entry:
        """The entry after an edit."""
        return Entry(shifted_range(self.range, touched))


def find_entry(module: Module | None, path: Path | None, text: str) -> Entry | None:
    """The main guard; without one the statement outside of functions and classes that trains: that holds the first
    ``trainer.train()``, else the first ``accelerator.prepare(...)``, else the first ``backward()`` of a script that
    trains as it is read, or calls the function that does.

    ``module``: what the analysis made of the text; None when no rule concerns it, which says nothing of its entry.
    """
    module = module or _module_of(path, text)
    if module is None:
        return None
    for node in _candidates(module):
        return Entry(module.range_of(_statement_that_starts(node, module)))
    return None


def _statement_that_starts(node: ast.AST, module: Module) -> ast.AST:
    """The statement of the module that a node runs in; the node where a function around it is called by nobody here."""
    statement = _outermost(node, module)
    if not isinstance(statement, _DEFINITIONS):
        return statement
    for call in module.nodes(ast.Call):
        called = call.func if isinstance(call, ast.Call) else None
        if isinstance(called, ast.Name) and called.id == statement.name:
            caller = _outermost(call, module)
            if not isinstance(caller, _DEFINITIONS):
                return caller
    return node


def _outermost(node: ast.AST, module: Module) -> ast.AST:
    parent = module.parent(node)
    while parent is not None and not isinstance(parent, ast.Module):
        node, parent = parent, module.parent(parent)
    return node


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
