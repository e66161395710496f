"""Rules are found in folders, and a broken plug-in takes nothing else down."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ranksafe.checker.registry import ENTRY_POINT_GROUP, Registry

RULE = """
from ranksafe.checker.finding import Level
from ranksafe.checker.rule import Rule, RuleMetadata
from ranksafe.localization import Translated

class Plugged(Rule):
    metadata = RuleMetadata("{code}", "{name}", Translated("s", "摘要"), Level.WARNING, "1.0")

    def check(self, node, module, launch):
        yield from ()
"""


@pytest.fixture
def plug_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return tmp_path


def add_rule(folder: Path, text: str) -> None:
    folder.mkdir(parents=True)
    for package in (folder, folder.parent):
        (package / "__init__.py").touch()
    (folder / "rule.py").write_text(text, encoding="utf-8")


def test_a_plug_in_brings_rules(plug_ins: Path) -> None:
    add_rule(plug_ins / "plug_one" / "far", RULE.format(code="RS990", name="far"))
    registry = Registry.of_packages(["plug_one"])
    folder = registry.by_code("rs990")
    assert folder is not None
    assert folder is registry.by_name("far") is registry.find("far")
    assert folder.path == plug_ins / "plug_one" / "far"
    assert not folder.has_proof
    assert folder.fix_module() is None


def test_plug_ins_are_found_where_they_are_installed(plug_ins: Path) -> None:
    add_rule(plug_ins / "plug_three" / "near", RULE.format(code="RS992", name="near"))
    assert Registry.load().by_code("RS992") is None
    information = plug_ins / "plug_three-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Name: plug-three\nVersion: 1.0\n", encoding="utf-8")
    written = f"[{ENTRY_POINT_GROUP}]\nthree = plug_three\n"
    (information / "entry_points.txt").write_text(written, encoding="utf-8")
    assert Registry.load().by_code("RS992") is not None
    assert Registry.load(entry_points=False).by_code("RS992") is None


def test_what_cannot_be_used_is_named(plug_ins: Path) -> None:
    add_rule(plug_ins / "plug_two" / "good", RULE.format(code="RS991", name="good"))
    add_rule(plug_ins / "plug_two" / "raises", "raise RuntimeError('no')")
    add_rule(plug_ins / "plug_two" / "empty", "")
    add_rule(plug_ins / "plug_two" / "same_code", RULE.format(code="RS991", name="other"))
    registry = Registry.of_packages(["plug_two", "no_such_package"])
    assert [folder.metadata.code for folder in registry.rules] == ["RS001", "RS991"]
    problems = "\n".join(registry.problems)
    for part in (
        "raises: RuntimeError: no",
        "empty: rule.py must define",
        "same_code",
        "no_such_package",
    ):
        assert part in problems


def test_selectors_that_name_nothing() -> None:
    registry = Registry.load(entry_points=False)
    assert registry.names_nothing("RS88")
    assert registry.names_nothing("no-such-rule")
    for selector in ("RS001", "RS", "ALL", "unused-suppression"):
        assert not registry.names_nothing(selector)


def test_every_rule_once_and_sorted() -> None:
    codes = [folder.metadata.code for folder in Registry.load().rules]
    assert codes == sorted(set(codes))
