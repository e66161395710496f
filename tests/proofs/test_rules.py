"""Every rule's proof does what it declares, on this machine as far as it can."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ranksafe.checker.registry import Registry
from ranksafe.checker.rule_folder import RuleFolder
from ranksafe.runs.proof import ProgramReport, ProofOutcome, run_program
from ranksafe.runs.proofs.header import ExpectedException, RunsOn, read_header

RULES = [folder for folder in Registry.load(entry_points=False).rules if folder.has_proof]


@pytest.mark.torch
@pytest.mark.parametrize("folder", RULES, ids=lambda folder: folder.metadata.code)
def test_proof(folder: RuleFolder, torch_python: Path) -> None:
    # Each program is one or two processes that mostly import torch: two at a time keep two cores busy.
    with ThreadPoolExecutor(2) as pool:
        programs = [folder.failing_proof, folder.fixed_proof]
        reports = list(pool.map(lambda program: run_program(program, torch_python), programs))
    for report in reports:
        check(report)


def check(report: ProgramReport) -> None:
    """Everything must have run; what needs CUDA devices and meets a limit of simulated ones says so and is fine."""
    assert report.header is not None, report.explanation.en
    limited = report.outcome is ProofOutcome.NOT_RUN and report.header.runs_on is RunsOn.CUDA
    if limited and report.simulated:
        assert report.explanation.en.startswith("simulation limit: ")
        return
    output = report.execution.output[-4000:] if report.execution else ""
    assert report.outcome is ProofOutcome.PROVED, (
        f"{report.program}: {report.explanation.en}\n{output}"
    )
    if isinstance(report.header.expectations[0], ExpectedException):
        assert report.exception is not None
        assert report.exception.blamed is not None


@pytest.mark.parametrize("seed", ["RS501", "RS101", "RS201", "RS301", "RS302", "RS510"])
def test_the_seeds_run_without_gpus(seed: str) -> None:
    folder = next(folder for folder in RULES if folder.metadata.code == seed)
    for program in (folder.failing_proof, folder.fixed_proof):
        assert read_header(program).runs_on is not RunsOn.CUDA
