"""Proofs of failures without an exception, which stand beside a rule's first proof as `*_silent.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranksafe.checker.registry import Registry
from ranksafe.runs.proof import run_program
from ranksafe.runs.proofs.header import read_header

from tests.proofs.test_rules import check

PROGRAMS = [
    program
    for folder in Registry.load(entry_points=False).rules
    for program in sorted((folder.path / "proof").glob("*_silent.py"))
]


def in_the_gate() -> list[object]:
    """Those that need no version of a library of their own."""
    return [
        pytest.param(
            program,
            marks=[pytest.mark.long] if read_header(program).requires else [],
            id=f"{program.parent.parent.name}/{program.stem}",
        )
        for program in PROGRAMS
    ]


@pytest.mark.torch
@pytest.mark.parametrize("program", in_the_gate())
def test_silent_program(program: Path, torch_python: Path) -> None:
    check(run_program(program, torch_python))
