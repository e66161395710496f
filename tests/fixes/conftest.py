"""Real modules of texts in which no rule needs to find anything."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import pytest
from ranksafe.fixes.apply import apply_edits
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit
from ranksafe.source.text import SourceText

Build = Callable[[Module], Edit | Sequence[Edit] | None]
Edited = Callable[[str, Build], str | None]


def module_of(text: str) -> Module:
    """The module of a text, every node known."""
    module = Module(SourceText(text))
    tree = ast.parse(text)
    module.fill(tree)
    return module


@pytest.fixture
def edited() -> Edited:
    """Apply what a function builds from a text's module; None when it builds nothing. The result always parses."""

    def apply(text: str, build: Build) -> str | None:
        edits = build(module_of(text))
        if edits is None:
            return None
        result = apply_edits(text, [edits] if isinstance(edits, Edit) else list(edits))
        ast.parse(result)
        return result

    return apply
