"""A node of a two-node job dies, or its network does: named with the lines where all ranks stood, nothing left behind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from ranksafe.runs.model import Outcome, RunResult

from .slurm_user import LONGEST_SECONDS, TWO_NODES, Cluster

pytestmark = pytest.mark.torch

_TRAINS = """\
import os, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
for step in range(100_000):
    if dist.get_rank() == 1:
        time.sleep(0.5)  # the work
    dist.all_reduce(torch.ones(1))
    if step == 5:
        print("trains on", os.environ["SLURMD_NODENAME"], flush=True)
"""
_WORK, _COLLECTIVE = 5, 6


@pytest.fixture
def trained(cluster: Cluster) -> Iterator[Cluster]:
    """The nodes are back when the test ends."""
    cluster.describe(**TWO_NODES)
    yield cluster
    for state in cluster.slurm.ask("sinfo", "-h", "-N", "-p", "gpu", "-o", "%N %t").splitlines():
        node, _, word = state.partition(" ")
        if word.startswith("down"):
            cluster.slurm.return_node(node)


def _run_until_lost(cluster: Cluster, script: Path, how: str, rank: int = 1) -> RunResult:
    """The controller misses the node after SlurmdTimeout, or is told."""
    node = f"n{rank + 1}"
    run = cluster.start(script)
    cluster.wait_until(run, lambda: f"trains on {node}" in cluster.output_of(rank))
    getattr(cluster.slurm, how)(node)
    if how == "lose_node":
        there = 1 - rank
        cluster.wait_until(run, lambda: any("by peer" in each for each in cluster.output_of(there)))
        cluster.slurm.ask("scontrol", "update", f"nodename={node}", "state=down", "reason=lost")
    result = run.wait(LONGEST_SECONDS)
    assert result is not None
    return result


def _processes_of(run_id: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if run_id.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
    return found


@pytest.mark.parametrize("rank", [1, pytest.param(0, marks=pytest.mark.long)])
def test_a_node_that_dies_is_named_where_its_rank_stood(trained: Cluster, rank: int) -> None:
    script = trained.script(_TRAINS)
    result = _run_until_lost(trained, script, "lose_node", rank)
    assert result.outcome is Outcome.FAILED
    root, *others = result.failures
    assert (root.kind, root.rank, root.root_cause) == ("node-failure", rank, True)
    assert root.message.startswith(f"node n{rank + 1} failed (job ")
    assert root.message.endswith(f"and with it rank {rank}")
    assert "no fault of the script" in root.explanation.en
    assert (root.filename, root.line) == (str(script), _WORK if rank else _COLLECTIVE)
    (other,) = others
    assert (other.kind, other.rank, other.root_cause) == ("peer-lost", 1 - rank, False)
    assert other.line == _COLLECTIVE
    assert {report.rank: report.exit for report in result.ranks} == {1 - rank: 1, rank: None}
    assert trained.slurm.jobs() == []
    assert _processes_of(result.run_id) == []


@pytest.mark.long
def test_a_node_without_a_network_is_named_though_no_connection_ended(trained: Cluster) -> None:
    script = trained.script(_TRAINS)
    result = _run_until_lost(trained, script, "cut_off_node")
    assert result.outcome is Outcome.FAILED
    root, *others = result.failures
    assert (root.kind, root.rank, root.line) == ("node-failure", 1, _WORK)
    assert "node n2 failed" in root.message
    assert [(each.rank, each.line, each.root_cause) for each in others] == [(0, _COLLECTIVE, False)]
    assert "waited here" in others[0].message
    # What stands still on n2 is not this cluster's to end until n2 comes back.
    assert not [words for words in _processes_of(result.run_id) if "node.py n1" in words]
