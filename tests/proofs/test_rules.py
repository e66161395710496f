"""Every rule's proof does what it declares, on this machine as far as it can."""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ranksafe.checker.registry import Registry
from ranksafe.checker.rule_folder import RuleFolder
from ranksafe.runs.proof import ProgramReport, ProofOutcome, run_program
from ranksafe.runs.proofs.header import ExpectedException, RunsOn, read_header
from ranksafe.runs.proofs.judgement import Judgement

from tests.proofs.forked import judge_forked

RULES = [folder for folder in Registry.load(entry_points=False).rules if folder.has_proof]
LAUNCHED = {"RS111", "RS501", "RS601"}
"""What the gate starts as a user does: on simulated GPUs, other versions of a library, simulated GPUs of the launcher. The
other ways are in `test_ways_to_run`. The long tests do it with all."""


def can_be_forked(folder: RuleFolder) -> bool:
    """Whether its proof runs on CPU ranks, with the libraries that the test environment has."""
    headers = [read_header(program) for program in programs_of(folder)]
    return all(each.runs_on is RunsOn.CPU_RANKS and not each.requires for each in headers)


def programs_of(folder: RuleFolder) -> list[Path]:
    return [folder.failing_proof, folder.fixed_proof]


FORKED = [folder for folder in RULES if can_be_forked(folder)]


def starts_slowly(folder: RuleFolder) -> bool:
    """Whether every rank imports what a fork does not spare it: a Trainer's modules, or torch in a spawned process."""
    texts = [program.read_text(encoding="utf-8") for program in programs_of(folder)]
    return any(word in text for text in texts for word in ("transformers", "trl", "spawn"))


@pytest.fixture(scope="module")
def forked(request: pytest.FixtureRequest, torch_python: Path) -> dict[Path, Judgement]:
    """All in one go, of the rules that were chosen."""
    chosen = [
        item.callspec.params["folder"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and "forked" in item.fixturenames
    ]
    return judge_forked([program for each in chosen for program in programs_of(each)], torch_python)


@pytest.mark.torch
@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(
            folder,
            marks=[pytest.mark.long] if starts_slowly(folder) else [],
            id=folder.metadata.code,
        )
        for folder in FORKED
    ],
)
def test_proof_in_forked_ranks(folder: RuleFolder, forked: dict[Path, Judgement]) -> None:
    for program in programs_of(folder):
        judgement = forked[program]
        assert judgement.outcome is ProofOutcome.PROVED, f"{program}: {judgement.explanation.en}"


@pytest.mark.torch
@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(
            folder,
            marks=[] if folder.metadata.code in LAUNCHED else [pytest.mark.long],
            id=folder.metadata.code,
        )
        for folder in RULES
    ],
)
def test_proof(folder: RuleFolder, torch_python: Path) -> None:
    # Each program is one or two processes that mostly import torch: two at a time keep two cores busy.
    with ThreadPoolExecutor(2) as pool:
        run = functools.partial(run_program, interpreter=torch_python)
        reports = list(pool.map(run, programs_of(folder)))
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
    for program in programs_of(folder):
        assert read_header(program).runs_on is not RunsOn.CUDA
