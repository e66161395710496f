"""Real modules, as the analyzer makes them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from ranksafe.checker.analysis import Analyzer
from ranksafe.checker.configuration import Configuration
from ranksafe.checker.registry import Registry
from ranksafe.fixes.apply import apply_edits
from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

REGISTRY = Registry.load(entry_points=False)


def _relevant(text: str) -> str:
    """A first line that makes a text worth analysing, with its line end."""
    return "# torch\r\n" if "\r\n" in text else "# torch\n"


Build = Callable[[Module], Edit | Sequence[Edit] | None]
Edited = Callable[[str, Build], str | None]


def module_of(text: str) -> Module:
    """The module of a text that starts with a comment which makes it worth analysing."""
    analyzer = Analyzer(REGISTRY, Configuration(), LaunchContext())
    module = analyzer.open(Path("a.py"), _relevant(text) + text).module
    assert module is not None
    return module


@pytest.fixture
def edited() -> Edited:
    """Apply what a function builds from a text's module; None when it builds nothing. The result always parses."""

    def apply(text: str, build: Build) -> str | None:
        edits = build(module_of(text))
        if edits is None:
            return None
        listed = [edits] if isinstance(edits, Edit) else list(edits)
        result = apply_edits(_relevant(text) + text, listed)
        ast.parse(result)
        return result.removeprefix(_relevant(text))

    return apply
