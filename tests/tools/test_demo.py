"""What ``make demo`` says it runs is what it runs: a newcomer types the lines after the dollar."""

from __future__ import annotations

import shlex
from pathlib import Path

import demo
import pytest


def test_the_command_that_is_shown_is_the_one_that_is_run(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program = tmp_path / "python"
    program.write_text(
        '#!/bin/sh\nshift 2\nfor word in "$@"; do printf "<%s>" "$word"; done; echo\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(demo, "project_environment", lambda *, development: program)
    monkeypatch.setattr(demo, "torch_environment", lambda *, for_tests: Path("/a folder/python"))
    assert demo.main() == 1, "a program that always succeeds finds nothing"
    lines = capfd.readouterr().out.splitlines()
    shown = [shlex.split(line)[2:] for line in lines if line.startswith("$ ranksafe ")]
    ran = [line[1:-1].split("><") for line in lines if line.startswith("<")]
    assert shown == ran
    assert len(ran) == 6
