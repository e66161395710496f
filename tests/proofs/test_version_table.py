"""What a plain Trainer does under nn.DataParallel, version by version: crash, silent loss of data, or right.

The messages of the rules about ``num_items_in_batch`` rest on this table.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ranksafe.runs.proofs.environment import overlay_for
from ranksafe.runs.proofs.evidence import Execution
from ranksafe.runs.proofs.execution import execute
from ranksafe.runs.proofs.header import ExpectedSuccess, Launch, ProofHeader, RunsOn

PROGRAM = Path(__file__).parent / "programs" / "trainer_loss.py"
CRASH = "chunk expects at least a 1-dimensional tensor"
RIGHT_LOSS = 4.15
"""Mean over the labels of a vocabulary of 64; the counted labels differ by version, hence the tolerance."""

BOTH_REPLICAS, ONE_REPLICA = [2, 2], [2]
HALVED, RIGHT = RIGHT_LOSS / 2, RIGHT_LOSS
TABLE = {
    "4.46.1": (BOTH_REPLICAS, HALVED),
    "4.46.3": CRASH,
    "4.47.1": (BOTH_REPLICAS, HALVED),
    "4.49.0": (BOTH_REPLICAS, HALVED),
    "4.50.3": CRASH,
    "4.51.3": (ONE_REPLICA, HALVED),
    "4.56.2": (ONE_REPLICA, HALVED),
    "4.57.6": (BOTH_REPLICAS, RIGHT),
    "5.23.0": (BOTH_REPLICAS, RIGHT),
}
QUICK = {"4.50.3"}


def versions() -> list[object]:
    return [
        pytest.param(version, marks=[] if version in QUICK else [pytest.mark.long])
        for version in TABLE
    ]


@pytest.mark.torch
@pytest.mark.parametrize("version", versions())
@pytest.mark.long
def test_version(version: str, torch_python: Path) -> None:
    execution = run(version, torch_python)
    expected = TABLE[version]
    if expected == CRASH:
        (exception,) = execution.exceptions
        assert exception.message == CRASH
        assert exception.blamed is not None
        assert exception.blamed.source == "trainer.train()"
        return
    rows, loss = expected
    assert execution.exit_status == 0, execution.output[-3000:]
    assert "n_gpu: 2" in execution.output
    assert f"rows per replica: {rows}" in execution.output
    seen = re.search(r"^loss: (.+)$", execution.output, re.MULTILINE)
    assert seen is not None
    assert float(seen[1]) == pytest.approx(loss, rel=0.1)


def run(version: str, torch_python: Path) -> Execution:
    header = ProofHeader(
        sentence="",
        runs_on=RunsOn.EMULATED_DP,
        ranks=2,
        requires=(f"transformers=={version}",),
        launch=Launch.PYTHON,
        expectations=(ExpectedSuccess(),),
        frame=None,
    )
    overlay = overlay_for(header.requires, torch_python, lambda text: None)
    return execute(
        PROGRAM, header, torch_python, overlay, timeout_seconds=300, should_stop=lambda: False
    )
