"""The rule pages in docs/ are those that the folders give now."""

from __future__ import annotations

import pytest
import rule_pages
from ranksafe.checker.registry import Registry
from ranksafe.localization import LANGUAGES, Language


@pytest.mark.parametrize("language", LANGUAGES)
def test_current(registry: Registry, language: Language) -> None:
    path = rule_pages.ROOT / "docs" / rule_pages.PAGES[language]
    assert path.read_text(encoding="utf-8") == rule_pages.page(registry, language), (
        "run `make docs`"
    )
