"""The tables of what libraries do and how people name things: each entry has a source, and the docs list the names."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranksafe.rank_flow.tables import table

PAGE = Path(__file__).parents[2] / "docs" / "rank-flow.md"


@pytest.mark.parametrize("name", ["functions", "methods"])
def test_every_group_says_where_it_was_read(name: str) -> None:
    for group in table(name)["groups"]:
        assert group["source"], group["effect"]
        assert group["names"] == sorted(set(group["names"])), group["effect"]


def test_no_two_groups_of_methods_have_one_effect() -> None:
    effects = [group["effect"] for group in table("methods")["groups"]]
    assert len(effects) == len(set(effects))


def test_the_page_lists_every_convention() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name, convention in table("conventions")["conventions"].items():
        assert f"| {name} |" in page
        assert all(f"`{word}`" in page for word in convention["names"]), name
