"""The detectors that watch nn.DataParallel, which needs devices: simulated ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranksafe.runs import agent
from ranksafe.runs.explain.evidence import load_evidence
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.explain.silent import silent_failures
from ranksafe.runs.model import Failure

from .conftest import Rehearse

pytestmark = pytest.mark.torch

PROGRAM = Path(__file__).parents[1] / "runs" / "detector_programs" / "dropped_replicas.py"


def detected(rehearse: Rehearse, directory: Path, kind: str, mode: str) -> list[Failure]:
    directory.mkdir()
    environment = {
        agent.DIRECTORY_VARIABLE: str(directory),
        agent.SCRIPT_VARIABLE: str(PROGRAM),
        agent.DETECTORS_VARIABLE: mode,
    }
    ended = rehearse(PROGRAM, kind, environment=environment)
    assert ended.returncode == 0, (directory / "rank0.stderr").read_text()
    assert "agent-problem" not in (directory / "rank0.jsonl").read_text()
    evidence = load_evidence(directory, 1)
    return silent_failures(evidence, UserCode([PROGRAM.parent]), "en", root_cause=True)


@pytest.mark.parametrize(
    ("kind", "mode", "found", "code", "words", "line"),
    [
        (
            "drops",
            "cheap",
            "dropped-replicas",
            "RS505",
            "3 of 6 rows are dropped",
            "# dropped here",
        ),
        ("small", "all", "idle-replicas", "RS305", "1 of them computed nothing", "# called here"),
        ("counts", "all", "lost-writes", "RS515", "self.calls", "# counted here"),
    ],
)
def test_what_data_parallel_loses_is_drawn_on_its_line(
    rehearse: Rehearse,
    tmp_path: Path,
    kind: str,
    mode: str,
    found: str,
    code: str,
    words: str,
    line: str,
) -> None:
    (failure,) = detected(rehearse, tmp_path / "evidence", kind, mode)
    assert (failure.kind, failure.code) == (found, code)
    assert words in failure.message
    assert failure.line is not None
    assert line in PROGRAM.read_text(encoding="utf-8").splitlines()[failure.line - 1]


def test_batches_that_fit_and_a_last_one_that_does_not_are_silent(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    assert detected(rehearse, tmp_path / "evidence", "right", "all") == []
