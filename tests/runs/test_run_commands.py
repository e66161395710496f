"""``ranksafe run``, ``diagnose`` and ``doctor`` as programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import SCRIPTS

LOGS = Path(__file__).parent / "logs"


def _ranksafe(
    *words: str, given: str = "", cwd: Path = SCRIPTS
) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return subprocess.run(
        [sys.executable, "-m", "ranksafe", *words],
        input=given,
        env={**os.environ, "PYTHONPATH": path, "LANG": "C.UTF-8", "LC_ALL": ""},
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )


@pytest.mark.torch
def test_run_prints_one_object_and_the_scripts_output_elsewhere(torch_python: Path) -> None:
    answer = _ranksafe(
        "run", "rank_one_fails.py", "--python", str(torch_python), "--cpu-ranks", "--gpus", "2",
        "--output-format", "json", "--", "raise",
    )  # fmt: skip
    assert answer.returncode == 1, answer.stderr
    told = json.loads(answer.stdout)
    assert set(told) >= {
        "schema", "run_id", "outcome", "target", "command", "modified", "limits", "ranks", "failures", "seconds",
    }  # fmt: skip
    assert told["outcome"] == "failed"
    failure = told["failures"][0]
    assert set(failure) >= {
        "kind", "code", "rank", "message", "filename", "location", "frames", "explanation", "root_cause",
    }  # fmt: skip
    assert failure["filename"] == str(SCRIPTS / "rank_one_fails.py")
    assert failure["frames"][-1]["function"] == "end_in_the_way"
    assert told["limits"]
    assert "[rank 0] met" in answer.stderr


@pytest.mark.torch
def test_run_draws_the_failure_on_its_line(torch_python: Path) -> None:
    answer = _ranksafe(
        "run", "rank_one_fails.py", "--python", str(torch_python), "--cpu-ranks", "--lang", "zh-cn",
        "--", "raise",
    )  # fmt: skip
    assert answer.returncode == 1, answer.stderr
    assert "[rank 0] met" in answer.stdout
    drawn = answer.stderr.splitlines()
    at = next(
        i
        for i, line in enumerate(drawn)
        if line.endswith('raise ValueError("this rank cannot go on")')
    )
    shown = next(
        i for i, line in enumerate(drawn) if " | " in line and 'raise ValueError("this' in line
    )
    assert at <= shown
    assert drawn[shown + 1].strip(" |") == "^" * len('raise ValueError("this rank cannot go on")')
    assert any("含义" in line for line in drawn)


def test_a_run_that_cannot_start_says_why_and_exits_with_2(tmp_path: Path) -> None:
    missing = str(tmp_path / "python")
    answer = _ranksafe("run", "alone.py", "--python", missing, "--output-format", "json")
    assert answer.returncode == 2
    assert missing in answer.stderr
    assert json.loads(answer.stdout)["outcome"] == "not-started"


def test_diagnose_reads_a_file_or_a_stream() -> None:
    text = (LOGS / "chained.log").read_text(encoding="utf-8")
    from_file = _ranksafe("diagnose", str(LOGS / "chained.log"))
    from_stream = _ranksafe("diagnose", "-", given=text)
    assert from_file.stdout == from_stream.stdout
    assert from_file.returncode == 1
    assert from_file.stdout.startswith(
        "/home/user/project/chained.py:8: failure rank 1: RuntimeError"
    )


def test_diagnose_finds_nothing_in_a_healthy_log() -> None:
    answer = _ranksafe("diagnose", "-", given="loss 0.1\n")
    assert (answer.returncode, answer.stderr) == (0, "")


def test_diagnose_of_a_missing_file_is_used_wrongly(tmp_path: Path) -> None:
    assert _ranksafe("diagnose", str(tmp_path / "none.log")).returncode == 2


@pytest.mark.torch
def test_doctor_lists_what_a_run_would_use(torch_python: Path) -> None:
    answer = _ranksafe("doctor", "--python", str(torch_python))
    assert answer.returncode == 0, answer.stdout
    assert "torch 2." in answer.stdout
    assert "accelerate 1." in answer.stdout
