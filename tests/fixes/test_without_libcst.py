"""A universal .vsix has no libcst, and a Python may be too new for a platform's: a fix that rewrites with it says so."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level
from ranksafe.checker.registry import Registry
from ranksafe.fixes.build import LibcstMissing, build_edits, edits_for
from ranksafe.localization import Translated
from ranksafe.source.position import Position, Range

from tests.checker.test_registry import RULE, add_rule
from tests.fixes.conftest import module_of

FIX = """
import ast
from ranksafe.fixes.statements import rewrite_statement

def edits(finding, offer, module):
    (statement,) = module.nodes(ast.Assign)
    edit = rewrite_statement(module, statement, lambda tree: tree)
    return [edit] if edit else None
"""
WORDS = Translated("w", "词")
OFFER = FixOffer("key", WORDS, Applicability.SAFE)


@pytest.fixture
def rewriting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Registry]:
    """A registry with one rule whose fix rewrites a statement; the name is that of its package."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load(package: str) -> Registry:
        add_rule(tmp_path / package / "far", RULE.format(code="RS990", name="far"))
        (tmp_path / package / "far" / "fix.py").write_text(FIX, encoding="utf-8")
        return Registry.of_packages([package])

    return load


@pytest.mark.parametrize("missing", ["libcst", "libcst.native"])
def test_the_reason_is_told_apart_from_changed_code(
    rewriting: Callable[[str], Registry], monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    registry = rewriting("rewrites_" + missing.replace(".", "_"))
    start = Position(0, 0)
    finding = Finding("RS990", "far", Level.WARNING, WORDS, Range(start, start), fixes=(OFFER,))
    module = module_of("x = 1\n")
    assert build_edits(finding, OFFER, module, registry) is None, "it changes nothing"
    for name in [name for name in sys.modules if name.split(".")[0] == "libcst"]:
        monkeypatch.delitem(sys.modules, name)
    # None in sys.modules is how Python itself is told that a module is not to be had.
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(LibcstMissing):
        build_edits(finding, OFFER, module, registry)
    assert edits_for(finding, OFFER, module, registry) is None
