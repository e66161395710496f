"""Proofs of failures without an exception, which stand beside a rule's first proof as `*_silent.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranksafe.checker.registry import Registry
from ranksafe.runs.proof import run_program

from tests.proofs.test_rules import check

PROGRAMS = [
    program
    for folder in Registry.load(entry_points=False).rules
    for program in sorted((folder.path / "proof").glob("*_silent.py"))
]


@pytest.mark.torch
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: f"{p.parent.parent.name}/{p.stem}")
def test_silent_program(program: Path, torch_python: Path) -> None:
    check(run_program(program, torch_python))
