"""The command line as a user calls it: a process of its own, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

DEVICE_MAP = """\
from accelerate import Accelerator
from transformers import AutoModelForCausalLM

accelerator = Accelerator()
model = AutoModelForCausalLM.from_pretrained("org/model", device_map="auto")
model = accelerator.prepare(model)
"""
"""RS201, a warning, on line 5."""

FIXED = DEVICE_MAP.replace(', device_map="auto"', "")


@dataclass(frozen=True, slots=True)
class Answer:
    """How a call ended."""

    status: int
    out: str
    error: str


Call = Callable[..., Answer]


@pytest.fixture
def call(tmp_path: Path) -> Call:
    """Call ``ranksafe`` with words in ``tmp_path / "project"``; ``given`` is its standard input."""
    project = tmp_path / "project"
    project.mkdir()

    def run(*words: str, given: str | bytes = b"", **environment: str) -> Answer:
        paths = [str(ROOT / "server"), str(ROOT / "rules")]
        complete = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path / "home"),
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONDONTWRITEBYTECODE": "1",
            **environment,
        }
        done = subprocess.run(
            [sys.executable, "-m", "ranksafe", *words],
            cwd=project,
            env=complete,
            input=given.encode() if isinstance(given, str) else given,
            capture_output=True,
            check=False,
        )
        error = done.stderr.decode()
        assert "Traceback" not in error, error
        return Answer(done.returncode, done.stdout.decode(), error)

    return run


@pytest.fixture
def project(tmp_path: Path, call: Call) -> Path:
    """The folder the calls run in."""
    return tmp_path / "project"
