"""Every rule's proof, unmodified, on simulated GPUs: the same failure on the same line, the fixed twin passes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ranksafe.checker.registry import Registry
from ranksafe.checker.rule_folder import RuleFolder
from ranksafe.runs.proof import ProofOutcome, run_program
from ranksafe.runs.proofs.execution import cuda_device_count
from ranksafe.runs.proofs.header import RunsOn, read_header

from .conftest import RehearsalEnvironment

RULES = [folder for folder in Registry.load(entry_points=False).rules if folder.has_proof]
LIMITS = {"RS202": "bitsandbytes quantises with CUDA kernels of its own"}
"""Proofs that simulated GPUs cannot carry out, and why; their reports must say so."""
NOT_OF_TORCH = {"RS301": "JAX splits the CPU itself"}
LONGEST_SECONDS = 240.0


def on_gpus(folder: RuleFolder) -> bool:
    return read_header(folder.failing_proof).runs_on is not RunsOn.JAX_HOST


@pytest.mark.torch
@pytest.mark.long
@pytest.mark.parametrize(
    "folder", [*filter(on_gpus, RULES)], ids=lambda folder: folder.metadata.code
)
def test_proof_in_rehearsal(
    folder: RuleFolder, rehearsal_environment: RehearsalEnvironment
) -> None:
    def run(program: Path):  # type: ignore[no-untyped-def]
        python = rehearsal_environment.interpreter
        return run_program(program, python, rehearse=True, timeout_seconds=LONGEST_SECONDS)

    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(run, [folder.failing_proof, folder.fixed_proof]))
    for report in reports:
        output = report.execution.output[-4000:] if report.execution else ""
        assert report.simulated
        if folder.metadata.code in LIMITS:
            assert report.outcome is ProofOutcome.NOT_RUN, output
            assert report.explanation.en.startswith("simulation limit: ")
            continue
        assert report.outcome is ProofOutcome.PROVED, f"{report.explanation.en}\n{output}"
        assert "simulated GPUs" in report.explanation.en


def test_every_proof_has_its_place() -> None:
    left_out = {folder.metadata.code for folder in RULES if not on_gpus(folder)}
    assert left_out == set(NOT_OF_TORCH)
    assert set(LIMITS) <= {folder.metadata.code for folder in RULES}


@pytest.mark.torch
@pytest.mark.skipif(cuda_device_count() >= 2, reason="the devices of this machine are real")
def test_what_needs_cuda_runs_on_simulated_gpus_where_there_are_none(
    rehearsal_environment: RehearsalEnvironment, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(_TWO_DEVICES, encoding="utf-8")
    report = run_program(program, rehearsal_environment.interpreter)
    assert report.outcome is ProofOutcome.PROVED, report.explanation.en
    assert report.exception is not None
    assert "(2 simulated GPUs)" in report.explanation.en
    assert "2 个模拟 GPU" in report.explanation.zh_cn


_TWO_DEVICES = '''\
"""A weight of one device meets a tensor of another.

runs-on: cuda
ranks: 2
expect: exception RuntimeError: Expected all tensors to be on the same device
frame: torch.nn.functional.linear(one, other)
"""
import torch

assert torch.cuda.device_count() == 2
one, other = torch.ones(2, 2, device="cuda:0"), torch.ones(2, 2, device="cuda:1")
torch.nn.functional.linear(one, other)
'''
