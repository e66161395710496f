"""Runs that are jobs of a real Slurm cluster: two nodes on this machine."""

from __future__ import annotations

import stat
import venv
from pathlib import Path

import pytest
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.model import Outcome, RunRequest
from ranksafe.runs.targets import target_named
from ranksafe.runs.targets.protocol import Listener

from .slurm_user import LONGEST_SECONDS, PLAIN, TWO_NODES, Cluster

_DISTRIBUTED = """\
import os, sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, mode = dist.get_rank(), sys.argv[1]
kept = torch.ones(1)  # gloo's threads abort a rank that is leaving when they are the last to hold a tensor
print("met", dist.get_world_size(), os.environ["SLURMD_NODENAME"], sys.argv[2:], flush=True)
if mode == "go" and rank == 1:
    time.sleep(2.5)
for step in range(3):
    dist.all_reduce(kept)
if mode == "raise" and rank == 1:
    raise ValueError("this rank cannot go on")
if mode == "exit" and rank == 1:
    sys.exit(7)
if mode == "part":
    if rank == 0:
        dist.all_gather_object([None, None], 1)
    else:
        dist.barrier()
if mode == "fill" and rank == 1:
    held = []
    while True:
        held.append(b"x" * 50_000_000 + bytes([len(held) % 256]))
        time.sleep(0.02)
dist.all_reduce(kept)
dist.destroy_process_group()
"""


@pytest.mark.torch
def test_a_run_on_two_nodes_with_names_that_no_shell_may_read(cluster: Cluster) -> None:
    folder = "a 'b' \"c\" $(touch pwned) `touch pwned` ;&| 名前 %j"
    cluster.describe(**TWO_NODES)
    script = cluster.script(_DISTRIBUTED, folder, "-train it's $HOME.py")
    words = ("--lr", "$(touch pwned)", "a\nb", "'\"", "*", "")
    result = cluster.run(script, "go", *words, environment={"SECRET_TOKEN": "s3cr3t"})
    assert result.outcome is Outcome.SUCCEEDED, cluster.output_of(None)
    assert cluster.output_of(0)[0] == f"met 2 n1 {list(words)}"
    assert cluster.output_of(1)[0] == f"met 2 n2 {list(words)}"
    assert [(rank.rank, rank.exit) for rank in result.ranks] == [(0, 0), (1, 0)]
    assert any("runs on n1, n2" in text for text in cluster.said())
    assert not list(cluster.folder.rglob("pwned"))
    (there,) = (cluster.folder / "runs 100%j \\ here" / "runs").iterdir()
    assert stat.S_IMODE(there.stat().st_mode) == 0o700
    assert (there / "node.0.log").exists()
    for file in (each for each in there.rglob("*") if each.is_file()):
        assert "s3cr3t" not in file.read_text(errors="replace"), file


@pytest.mark.torch
def test_an_exception_on_the_second_node_is_drawn_on_its_line(cluster: Cluster) -> None:
    cluster.describe(**TWO_NODES)
    script = cluster.script(_DISTRIBUTED)
    result = cluster.run(script, "raise")
    assert result.outcome is Outcome.FAILED
    root = result.failures[0]
    assert (root.rank, root.root_cause) == (1, True)
    assert root.message == "ValueError: this rank cannot go on"
    assert (root.filename, root.line) == (str(script), _line("raise ValueError"))
    assert not any(failure.root_cause for failure in result.failures[1:])
    assert any(line.startswith("node.1: ") for line in cluster.output_of(None))
    assert any("this rank cannot go on" in line for line in cluster.output_of(1))


@pytest.mark.torch
@pytest.mark.long
def test_an_exit_status_without_an_exception_is_found(cluster: Cluster) -> None:
    cluster.describe(**TWO_NODES)
    result = cluster.run(cluster.script(_DISTRIBUTED), "exit")
    root = result.failures[0]
    assert (root.rank, root.kind, root.line) == (1, "exit-status", _line("sys.exit(7)"))
    assert "exit status 7" in root.message


@pytest.mark.torch
@pytest.mark.long
def test_nodes_that_wait_for_each_other_in_vain_are_found(cluster: Cluster) -> None:
    cluster.describe(**TWO_NODES)
    result = cluster.run(cluster.script(_DISTRIBUTED), "part")
    assert result.outcome is Outcome.FAILED
    places = {failure.rank: failure.line for failure in result.failures}
    assert places == {0: _line("all_gather_object"), 1: _line("dist.barrier")}
    assert cluster.slurm.jobs() == []


@pytest.mark.torch
@pytest.mark.long
def test_a_rank_that_takes_too_much_memory_is_told_from_one_that_is_killed(
    cluster: Cluster,
) -> None:
    if not cluster.slurm.memory_is_limited:
        pytest.skip("needs root and memory cgroups (version 1) for limits on memory")
    cluster.describe(**TWO_NODES, memory="900M")
    result = cluster.run(cluster.script(_DISTRIBUTED), "fill")
    root = result.failures[0]
    assert (root.rank, root.kind) == (1, "host-out-of-memory")
    assert "n2" in root.explanation.en
    assert root.line in (_line("held.append"), _line("time.sleep(0.02)"))


def _line(text: str) -> int:
    return next(number for number, line in enumerate(_DISTRIBUTED.splitlines(), 1) if text in line)


@pytest.mark.torch
@pytest.mark.long
def test_a_cancelled_run_leaves_no_job(cluster: Cluster) -> None:
    run = cluster.start(cluster.script(PLAIN), "100", launcher="python")
    cluster.wait_until(run, lambda: "second 1" in cluster.output_of(0))
    (job,) = cluster.slurm.jobs()
    run.cancel()
    result = run.wait(LONGEST_SECONDS)
    assert result is not None
    assert result.outcome is Outcome.CANCELLED
    assert result.failures == ()
    assert cluster.slurm.jobs() == []
    assert "JobState=CANCELLED" in cluster.slurm.ask("scontrol", "-o", "show", "job", job)


@pytest.mark.torch
def test_a_run_that_waits_is_cancelled_before_it_began(cluster: Cluster) -> None:
    cluster.describe(**TWO_NODES)
    with cluster.slurm.occupied() as other:
        run = cluster.start(cluster.script(PLAIN), "1")
        cluster.wait_until(run, lambda: any("(Resources)" in text for text in cluster.said()))
        run.cancel()
        result = run.wait(LONGEST_SECONDS)
        assert cluster.slurm.jobs() == [other]
    assert result is not None
    assert (result.outcome, result.failures) == (Outcome.CANCELLED, ())
    assert cluster.output_of(0) == []


@pytest.mark.torch
def test_a_run_that_has_to_wait_says_why_and_where_it_stands(cluster: Cluster) -> None:
    cluster.describe(**TWO_NODES)
    with cluster.slurm.occupied():
        # The sample of the accelerate launcher, with its own choice of everything.
        script = cluster.script("from accelerate import Accelerator\nprint(Accelerator().state)\n")
        run = cluster.start(script)
        cluster.wait_until(run, lambda: any("(Resources)" in text for text in cluster.said()))
        assert any("number 1 in the queue" in text for text in cluster.said())
    result = run.wait()
    assert result is not None
    assert result.outcome is Outcome.SUCCEEDED, cluster.output_of(None)
    assert "Num processes: 2" in cluster.output_of(1)


@pytest.mark.torch
def test_what_slurm_refuses_is_quoted_and_leaves_nothing(cluster: Cluster) -> None:
    cluster.describe(**{"gpus-per-node": 9})
    with pytest.raises(RunNotPossible) as caught:
        cluster.start(cluster.script(PLAIN), "1")
    assert "Requested node configuration is not available" in caught.value.message.en
    assert "Slurm 拒绝" in caught.value.message.zh_cn
    assert list((cluster.folder / "runs 100%j \\ here" / "runs").iterdir()) == []
    assert cluster.slurm.jobs() == []


@pytest.mark.torch
def test_a_machine_without_slurm_is_named(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(cluster.folder))
    with pytest.raises(RunNotPossible) as caught:
        cluster.start(cluster.script(PLAIN), "1")
    assert "localhost has no Slurm" in caught.value.message.en


@pytest.mark.torch
def test_a_cluster_that_does_not_answer_is_named(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = cluster.slurm.configuration.read_text()
    dead = tmp_path / "slurm.conf"
    dead.write_text(text.replace("SlurmctldPort=", "SlurmctldPort=1#") + "MessageTimeout=2\n")
    monkeypatch.setenv("SLURM_CONF", str(dead))
    with pytest.raises(RunNotPossible) as caught:
        cluster.start(cluster.script(PLAIN), "1")
    assert "does not answer" in caught.value.message.en


@pytest.mark.torch
def test_an_interpreter_that_does_not_run_there_is_named(cluster: Cluster) -> None:
    cluster.describe(interpreter="~/no such env/bin/python")
    with pytest.raises(RunNotPossible) as caught:
        cluster.start(cluster.script(PLAIN), "1")
    assert "no such env/bin/python" in caught.value.message.en
    assert "interpreter of the cluster mine" in caught.value.message.en


@pytest.mark.torch
def test_an_interpreter_without_torch_is_named(cluster: Cluster, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    bare = tmp_path / "bare" / "bin" / "python"
    cluster.describe(interpreter=str(bare))
    with pytest.raises(RunNotPossible) as caught:
        cluster.start(cluster.script("import torch\ntorch.distributed.init_process_group()\n"))
    assert str(bare) in caught.value.message.en
    assert "torch" in caught.value.message.en
    assert cluster.slurm.jobs() == []


@pytest.mark.torch
def test_a_partition_that_is_not_there_is_named(cluster: Cluster) -> None:
    cluster.describe(partition="fast")
    with pytest.raises(RunNotPossible) as caught:
        cluster.start(cluster.script(PLAIN), "1")
    assert "gpu, short" in caught.value.message.en


@pytest.mark.torch
def test_a_folder_that_the_nodes_do_not_see_is_named(cluster: Cluster) -> None:
    script = cluster.script(PLAIN)
    run = cluster.start(script, "1", launcher="python", working_directory=script.parent / "gone")
    result = run.wait(LONGEST_SECONDS)
    assert result is not None
    assert result.outcome is Outcome.FAILED
    assert result.failures[0].kind == "not-on-the-node"
    assert "n1" in result.failures[0].message
    assert "gone" in result.failures[0].message


@pytest.mark.torch
def test_an_interpreter_that_the_nodes_do_not_see_is_named(
    cluster: Cluster, tmp_path: Path
) -> None:
    interpreter = tmp_path / "my $(env) python"
    interpreter.write_text(f'#!/bin/sh\nexec {cluster.python} "$@"\n')
    interpreter.chmod(0o700)
    cluster.describe(**TWO_NODES, interpreter=str(interpreter))
    with cluster.slurm.occupied() as other:
        run = cluster.start(cluster.script(PLAIN), "1", gpus=1, launcher="python")
        interpreter.unlink()
        cluster.slurm.ask("scancel", other)
        result = run.wait(LONGEST_SECONDS)
    assert result is not None
    assert result.outcome is Outcome.FAILED
    assert result.failures[0].kind == "not-on-the-node"
    assert result.failures[0].message.startswith("node n")
    assert str(interpreter) in result.failures[0].message


@pytest.mark.torch
def test_the_doctor_looks_at_a_cluster(cluster: Cluster) -> None:
    request = RunRequest(script=cluster.folder / "train.py", target="slurm:mine")
    found = "\n".join(each.en for each in target_named("slurm:mine").probe(request, Listener()))
    assert "Slurm 2" in found
    assert "partition gpu*: 2 nodes idle, 4 of 4 GPUs free" in found
    assert "torch 2" in found
    assert "without CUDA" in found
