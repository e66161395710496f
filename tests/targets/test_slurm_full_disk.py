"""The cluster's disk is full: before a job is submitted, and while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.model import Outcome

from .slurm_user import LONGEST_SECONDS, PLAIN, TWO_NODES, Cluster

pytestmark = pytest.mark.torch

_SAVES = """\
import os, sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    with open(sys.argv[1], "wb") as file:
        while True:
            file.write(b"0" * 1_000_000)  # a checkpoint
dist.barrier()
"""
_FILLS_THE_RUNS_DISK = """\
import sys, time
print("begins", flush=True)
time.sleep(3)
try:
    with open(sys.argv[1], "wb", buffering=0) as file:
        while file.write(b"0" * 1000):
            pass
except OSError:
    pass
time.sleep(5)
"""


def test_a_disk_that_is_full_before_the_start(cluster: Cluster, small_disk: Path) -> None:
    (small_disk / "others").write_bytes(b"0" * 10_000_000)
    cluster.describe(folder=str(small_disk / "runs"))
    before = cluster.slurm.ask("squeue", "-h", "-t", "all", "-o", "%i")
    with pytest.raises(RunNotPossible) as caught:
        cluster.start(cluster.script(PLAIN), "1")
    assert str(small_disk / "runs") in caught.value.message.en
    assert "the disk is full" in caught.value.message.en
    assert "磁盘已满" in caught.value.message.zh_cn
    assert cluster.slurm.ask("squeue", "-h", "-t", "all", "-o", "%i") == before
    assert not (small_disk / "runs").exists()


@pytest.mark.long
def test_a_rank_that_finds_the_disk_full(cluster: Cluster, small_disk: Path) -> None:
    cluster.describe(**TWO_NODES)
    script = cluster.script(_SAVES)
    result = cluster.run(script, str(small_disk / "checkpoint.pt"))
    assert result.outcome is Outcome.FAILED
    root = result.failures[0]
    assert (root.rank, root.kind) == (1, "disk-full")
    assert root.line == 6
    assert root.filename == str(script)
    assert not any(failure.root_cause for failure in result.failures[1:])


@pytest.mark.long
def test_evidence_that_cannot_be_written_is_said_and_what_was_written_counts(
    cluster: Cluster, small_disk: Path
) -> None:
    cluster.describe(folder=str(small_disk / "runs"))
    script = cluster.script(_FILLS_THE_RUNS_DISK)
    run = cluster.start(script, str(small_disk / "filler"), launcher="python")
    result = run.wait(LONGEST_SECONDS)
    assert result is not None
    assert any("is full" in text and str(small_disk) in text for text in cluster.said())
    assert result.outcome is Outcome.SUCCEEDED, (result.failures, cluster.output_of(None))
    assert cluster.output_of(0) == ["begins"]
    assert cluster.slurm.jobs() == []
