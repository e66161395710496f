"""The ways a proof runs, each checked by programs that know what they must see."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranksafe.runs.proof import run_program

from tests.proofs.test_rules import check

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.torch
@pytest.mark.parametrize("name", ["data_parallel", "wrong_device", "ranks"])
def test_program(name: str, torch_python: Path) -> None:
    check(run_program(PROGRAMS / f"{name}.py", torch_python))


@pytest.mark.torch
def test_only_ranks_are_blamed(torch_python: Path) -> None:
    report = run_program(PROGRAMS / "one_rank_fails.py", torch_python)
    check(report)
    assert report.execution is not None
    assert [item.rank for item in report.execution.exceptions] == [1]
    assert report.execution.exceptions[0].type == "ValueError"
