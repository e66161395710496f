"""Runs that are jobs of a real Slurm cluster: two nodes on this machine."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ranksafe.runs.attach import attach
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.model import Outcome, RunEvent, RunRequest, RunResult
from ranksafe.runs.start import Run, start_run
from ranksafe.runs.targets import target_named
from ranksafe.runs.targets.protocol import Listener
from ranksafe.runs.targets.slurm.settings import clusters_file

from .slurm_cluster import SlurmCluster, running_cluster

LONGEST_SECONDS = 120.0
_TWO_NODES = {"nodes": 2, "gpus-per-node": 1}
_DISTRIBUTED = """\
import os, sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, mode = dist.get_rank(), sys.argv[1]
print("met", dist.get_world_size(), os.environ["SLURMD_NODENAME"], sys.argv[2:], flush=True)
for step in range(3):
    dist.all_reduce(torch.ones(1))
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
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
"""
_PLAIN = """\
import sys, time
for second in range(int(sys.argv[1])):
    print("second", second, flush=True)
    time.sleep(1)
"""


@dataclass
class Cluster:
    """The cluster as a user has it in the settings, and the runs there."""

    slurm: SlurmCluster
    folder: Path
    python: Path
    events: list[RunEvent] = field(default_factory=list)

    def describe(self, **keys: Any) -> None:
        """Write the user's file, with these keys besides the usual ones."""
        values = {
            "interpreter": str(self.python),
            "folder": str(self.folder / "runs 100%j \\ here"),
            "poll-seconds": 1,
            **keys,
        }
        lines = [f"{key} = {_toml(value)}" for key, value in values.items()]
        path = clusters_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(["[mine]", *lines]) + "\n", encoding="utf-8")

    def script(self, text: str, folder: str = "project", name: str = "train.py") -> Path:
        """A script in the user's project."""
        path = self.folder / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def start(self, script: Path, *arguments: str, **fields: Any) -> Run:
        """Start it there."""
        given = {
            "working_directory": script.parent,
            "timeout_seconds": LONGEST_SECONDS,
            **fields,
        }
        request = RunRequest(script=script, target="slurm:mine", arguments=arguments, **given)
        self.events.clear()
        return start_run(request, self.events.append)

    def run(self, script: Path, *arguments: str, **fields: Any) -> RunResult:
        """Run it there to its end."""
        result = self.start(script, *arguments, **fields).wait()
        assert result is not None
        return result

    def said(self, kind: str = "status") -> list[str]:
        """The texts of the last run's events."""
        return [event.text for event in self.events if event.kind == kind]

    def output_of(self, rank: int | None) -> list[str]:
        """The lines of a rank, or of the nodes' launchers."""
        return [each.text for each in self.events if each.kind == "output" and each.rank == rank]

    def wait_until(self, run: Run, condition: Callable[[], object]) -> None:
        """Until it holds, which it must before the run is over."""
        while not condition():
            assert run.wait(0.1) is None, (self.said(), self.output_of(None))


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value + "'"
    return str(value)


@pytest.fixture
def cluster(
    slurm_cluster: SlurmCluster,
    torch_python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Cluster:
    """The user's settings name the test cluster; no job is left when the test ends."""
    return _cluster(slurm_cluster, torch_python, tmp_path, monkeypatch)


def _cluster(
    slurm: SlurmCluster, python: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Cluster:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.setenv("SLURM_CONF", str(slurm.configuration))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    cluster = Cluster(slurm, folder, python)
    cluster.describe()
    slurm.wait_until_idle()
    return cluster


@pytest.mark.torch
def test_a_run_on_two_nodes_with_names_that_no_shell_may_read(cluster: Cluster) -> None:
    folder = "a 'b' \"c\" $(touch pwned) `touch pwned` ;&| 名前 %j"
    cluster.describe(**_TWO_NODES)
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
    cluster.describe(**_TWO_NODES)
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
    cluster.describe(**_TWO_NODES)
    result = cluster.run(cluster.script(_DISTRIBUTED), "exit")
    root = result.failures[0]
    assert (root.rank, root.kind, root.line) == (1, "exit-status", _line("sys.exit(7)"))
    assert "exit status 7" in root.message


@pytest.mark.torch
@pytest.mark.long
def test_nodes_that_wait_for_each_other_in_vain_are_found(cluster: Cluster) -> None:
    cluster.describe(**_TWO_NODES)
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
    cluster.describe(**_TWO_NODES, memory="900M")
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
    run = cluster.start(cluster.script(_PLAIN), "100", launcher="python")
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
def test_a_run_that_has_to_wait_says_why_and_where_it_stands(cluster: Cluster) -> None:
    cluster.describe(**_TWO_NODES)
    holding = ["sbatch", "--parsable", "--nodes=2", "--gres=gpu:2", "--output=/dev/null"]
    other = cluster.slurm.ask(*holding, "--wrap", "sleep 100").strip()
    try:
        # The sample of the accelerate launcher, with its own choice of everything.
        script = cluster.script("from accelerate import Accelerator\nprint(Accelerator().state)\n")
        run = cluster.start(script)
        cluster.wait_until(run, lambda: any("(Resources)" in text for text in cluster.said()))
        assert any("number 1 in the queue" in text for text in cluster.said())
    finally:
        cluster.slurm.ask("scancel", other)
    result = run.wait()
    assert result is not None
    assert result.outcome is Outcome.SUCCEEDED, cluster.output_of(None)
    assert "Num processes: 2" in cluster.output_of(1)


@pytest.mark.torch
def test_what_slurm_refuses_is_quoted_and_leaves_nothing(cluster: Cluster) -> None:
    cluster.describe(**{"gpus-per-node": 9})
    with pytest.raises(RunNotPossible) as caught:
        cluster.start(cluster.script(_PLAIN), "1")
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
        cluster.start(cluster.script(_PLAIN), "1")
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
        cluster.start(cluster.script(_PLAIN), "1")
    assert "does not answer" in caught.value.message.en


@pytest.mark.torch
def test_an_interpreter_that_does_not_run_there_is_named(cluster: Cluster) -> None:
    cluster.describe(interpreter="~/no such env/bin/python")
    with pytest.raises(RunNotPossible) as caught:
        cluster.start(cluster.script(_PLAIN), "1")
    assert "no such env/bin/python" in caught.value.message.en
    assert "interpreter of the cluster mine" in caught.value.message.en


@pytest.mark.torch
def test_a_partition_that_is_not_there_is_named(cluster: Cluster) -> None:
    cluster.describe(partition="fast")
    with pytest.raises(RunNotPossible) as caught:
        cluster.start(cluster.script(_PLAIN), "1")
    assert "gpu, short" in caught.value.message.en


@pytest.mark.torch
def test_a_folder_that_the_nodes_do_not_see_is_named(cluster: Cluster) -> None:
    script = cluster.script(_PLAIN)
    run = cluster.start(script, "1", launcher="python", working_directory=script.parent / "gone")
    result = run.wait(LONGEST_SECONDS)
    assert result is not None
    assert result.outcome is Outcome.FAILED
    assert result.failures[0].kind == "not-on-the-node"
    assert "n1" in result.failures[0].message
    assert "gone" in result.failures[0].message


@pytest.mark.torch
def test_the_doctor_looks_at_a_cluster(cluster: Cluster) -> None:
    request = RunRequest(script=cluster.folder / "train.py", target="slurm:mine")
    found = "\n".join(each.en for each in target_named("slurm:mine").probe(request, Listener()))
    assert "Slurm 2" in found
    assert "partition gpu*: 2 nodes idle, 4 of 4 GPUs free" in found
    assert "torch 2" in found
    assert "without CUDA" in found


_STARTS = """\
import sys, time
from pathlib import Path
from ranksafe.runs.model import RunRequest
from ranksafe.runs.start import start_run
script = Path(sys.argv[1])
request = RunRequest(script, "slurm:mine", arguments=("5",), working_directory=script.parent, launcher="python")
run = start_run(request, lambda event: print(event.text, flush=True))
print("run", run.run_id, flush=True)
run.wait()
"""


@pytest.mark.torch
def test_a_job_outlives_the_editor_and_is_found_again(cluster: Cluster) -> None:
    script = cluster.script(_PLAIN)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    editor = subprocess.Popen(
        [sys.executable, "-c", _STARTS, str(script)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert editor.stdout is not None
    lines = []
    for line in editor.stdout:
        lines.append(line)
        if line == "second 1\n":
            break
    editor.send_signal(signal.SIGKILL)
    editor.wait()
    editor.stdout.close()
    (run_id,) = [line.split()[1] for line in lines if line.startswith("run ")]
    assert len(cluster.slurm.jobs()) == 1
    result = attach(run_id, cluster.events.append).wait(LONGEST_SECONDS)
    assert result is not None
    assert (result.run_id, result.outcome) == (run_id, Outcome.SUCCEEDED)
    assert cluster.output_of(0) == [f"second {number}" for number in range(5)]
    with pytest.raises(RunNotPossible):
        attach(None, cluster.events.append)


@pytest.mark.torch
@pytest.mark.long
def test_a_job_goes_on_when_the_editor_is_closed(cluster: Cluster) -> None:
    run = cluster.start(cluster.script(_PLAIN), "4", launcher="python")
    cluster.wait_until(run, lambda: "second 1" in cluster.output_of(0))
    assert not run.leave()
    assert len(cluster.slurm.jobs()) == 1
    assert run.wait(1.0) is None
    cluster.slurm.wait_until_idle()
    result = attach(run.run_id, cluster.events.append).wait(LONGEST_SECONDS)
    assert result is not None
    assert result.outcome is Outcome.SUCCEEDED
    assert cluster.output_of(0)[-1] == "second 3"


@pytest.mark.torch
@pytest.mark.long
def test_a_controller_that_is_silent_for_a_while_has_not_forgotten_the_job(
    cluster: Cluster,
) -> None:
    run = cluster.start(cluster.script(_PLAIN), "30", launcher="python")
    cluster.wait_until(run, lambda: "second 1" in cluster.output_of(0))
    controller = int((cluster.slurm.folder / "slurmctld.pid").read_text())
    os.kill(controller, signal.SIGSTOP)
    try:
        cluster.wait_until(run, lambda: any("does not answer" in each for each in cluster.said()))
    finally:
        os.kill(controller, signal.SIGCONT)
    result = run.wait(LONGEST_SECONDS)
    assert result is not None
    assert result.outcome is Outcome.SUCCEEDED
    assert cluster.output_of(0)[-1] == "second 29"


@pytest.mark.torch
@pytest.mark.long
@pytest.mark.parametrize(
    ("has_word", "outcome"), [(True, Outcome.SUCCEEDED), (False, Outcome.FAILED)]
)
def test_a_job_that_slurm_has_forgotten_is_explained_from_its_own_files(
    cluster: Cluster, has_word: bool, outcome: Outcome
) -> None:
    run = cluster.start(cluster.script(_PLAIN), "2", launcher="python")
    cluster.wait_until(run, lambda: "second 1" in cluster.output_of(0))
    run.leave()
    cluster.slurm.wait_until_idle()
    here = cluster.folder / "cache" / "ranksafe" / "runs" / run.run_id
    state = json.loads((here / "target.json").read_text())
    # As after MinJobAge: a number that the controller does not know, and no accounting.
    (here / "target.json").write_text(json.dumps({**state, "number": "1"}))
    if not has_word:
        Path(state["directory"], "over.json").unlink()
    result = attach(run.run_id, cluster.events.append).wait(LONGEST_SECONDS)
    assert result is not None
    assert result.outcome is outcome
    assert [failure.kind for failure in result.failures] == ([] if has_word else ["run-lost"])
    if not has_word:
        assert "Slurm does not know any more" in result.failures[0].message


@pytest.mark.torch
def test_a_watcher_that_dies_is_replaced_and_a_cancel_meanwhile_is_not_lost(
    cluster: Cluster,
) -> None:
    run = cluster.start(cluster.script(_PLAIN), "100", launcher="python")
    cluster.wait_until(run, lambda: "second 1" in cluster.output_of(0))
    conversation: Any = run._process._conversation  # type: ignore[attr-defined]
    conversation.kill()
    cluster.wait_until(run, lambda: any("goes on" in text for text in cluster.said()))
    run.cancel()
    result = run.wait(LONGEST_SECONDS)
    assert result is not None
    assert result.outcome is Outcome.CANCELLED
    assert any("reached again" in text for text in cluster.said())
    seconds = [line for line in cluster.output_of(0) if line.startswith("second")]
    assert seconds == [f"second {number}" for number in range(len(seconds))]
    assert cluster.slurm.jobs() == []


@pytest.mark.torch
@pytest.mark.long
def test_the_time_limit_is_told_with_the_line_that_was_reached(cluster: Cluster) -> None:
    cluster.describe(partition="short", time="1")
    script = cluster.script(_PLAIN)
    result = cluster.run(script, "1000", launcher="python", timeout_seconds=300.0)
    assert result.outcome is Outcome.FAILED
    root = result.failures[0]
    assert root.kind == "time-limit"
    assert "time limit" in root.explanation.en
    assert root.line in (3, 4)


@pytest.mark.torch
@pytest.mark.long
def test_a_node_that_fails_is_no_fault_of_the_script(
    torch_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_cluster() as slurm:
        cluster = _cluster(slurm, torch_python, tmp_path, monkeypatch)
        cluster.describe(nodes=1)
        run = cluster.start(cluster.script(_PLAIN), "1000", launcher="python")
        cluster.wait_until(run, lambda: "second 1" in cluster.output_of(0))
        threading.Timer(0.0, lambda: slurm.lose_node("n1")).start()
        result = run.wait(LONGEST_SECONDS)
        assert result is not None
        assert result.outcome is Outcome.FAILED
        assert result.failures[0].kind == "node-failure"
        assert "n1" in result.failures[0].message
