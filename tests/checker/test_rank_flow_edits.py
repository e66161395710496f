"""Rank flow under random edits: programs with collectives keep the findings of a fresh analysis."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checker.test_incremental import edit_and_compare

PROGRAMS = Path(__file__).parents[1] / "rank_bench" / "programs"
SAMPLE = sorted(PROGRAMS.glob("*/*/incorrect.py"))


@pytest.mark.parametrize("path", SAMPLE[::6], ids=lambda path: path.parent.name)
def test_edited_program_has_the_findings_of_a_fresh_analysis(path: Path) -> None:
    edit_and_compare(path, edits=25, seed=len(path.parent.name))


@pytest.mark.long
@pytest.mark.parametrize("path", SAMPLE, ids=lambda path: path.parent.name)
def test_every_program_under_many_edits(path: Path) -> None:
    edit_and_compare(path, edits=80, seed=1)
