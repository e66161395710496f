"""What simulated devices compute is what the CPU computes: a quick part of measurements/operators.py."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from .conftest import RehearsalEnvironment, run_rehearsal

SCRIPT = Path(__file__).parent / "device_scripts" / "operators.py"
CASES = re.findall(r"^@case\ndef (\w+)", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def problems(
    rehearsal_environment: RehearsalEnvironment, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """What differs in each case."""
    folder = tmp_path_factory.mktemp("operators")
    done = run_rehearsal(rehearsal_environment, folder, SCRIPT)
    assert done.returncode == 0, done.stderr
    entries = [json.loads(line) for line in done.lines if line.startswith('{"case"')]
    return {entry["case"]: entry["problem"] for entry in entries}


@pytest.mark.parametrize("case", CASES)
def test_computes_what_the_cpu_computes(problems: dict[str, str], case: str) -> None:
    assert problems[case] == ""
