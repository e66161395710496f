"""The registry, read once: every test of this folder is about what it holds."""

from __future__ import annotations

import pytest
from ranksafe.checker.registry import Registry
from ranksafe.checker.rule_folder import RuleFolder

REGISTRY = Registry.load(entry_points=False)


@pytest.fixture(scope="session")
def registry() -> Registry:
    return REGISTRY


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``folder``: every rule. ``proved_folder``: every rule with a proof."""
    for name, folders in (
        ("folder", REGISTRY.rules),
        ("proved_folder", [folder for folder in REGISTRY.rules if folder.has_proof]),
    ):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, folders, ids=_identifier)


def _identifier(folder: RuleFolder) -> str:
    return folder.metadata.code
