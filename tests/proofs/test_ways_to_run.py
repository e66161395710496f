"""The ways a proof runs, each checked by programs that know what they must see."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranksafe.runs.proof import run_program

from tests.proofs.test_rules import check

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.torch
@pytest.mark.parametrize("name", ["data_parallel", "wrong_device", "ranks", "lines_in_pieces"])
def test_program(name: str, torch_python: Path) -> None:
    check(run_program(PROGRAMS / f"{name}.py", torch_python))


@pytest.mark.torch
def test_only_ranks_are_blamed(torch_python: Path) -> None:
    report = run_program(PROGRAMS / "one_rank_fails.py", torch_python)
    check(report)
    assert report.execution is not None
    # The other rank may fail too, once its peer is gone; the launcher's own exception is no evidence.
    by_rank = {item.rank: item.type for item in report.execution.exceptions}
    assert by_rank[1] == "ValueError"
    assert None not in by_rank
