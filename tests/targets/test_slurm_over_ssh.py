"""A cluster whose login node is another machine: a real sshd, a real Slurm."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.model import Outcome, RunEvent, RunRequest
from ranksafe.runs.start import start_run
from ranksafe.runs.targets.slurm.settings import clusters_file

from .slurm_cluster import SlurmCluster
from .ssh_server import HOST, SshServer, ssh_server

pytestmark = pytest.mark.torch

_FAILS_ON_THE_SECOND_NODE = """\
import os, sys
import helper

print("here", os.getcwd(), flush=True)
helper.work(os.environ["SLURM_NODEID"])
"""
_HELPER = """\
import time


def work(node):
    if node == "1":
        raise ValueError("not on this node")
    time.sleep(30)
"""


@pytest.fixture
def login(
    slurm_cluster: SlurmCluster,
    torch_python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[SshServer]:
    """Only there are Slurm's commands told where the cluster is."""
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for name in ("cache", "config", "runtime"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(tmp_path / name))
    environment = {"SLURM_CONF": str(slurm_cluster.configuration)}
    with ssh_server(tmp_path / "sshd", environment=environment) as server:
        monkeypatch.setenv("RANKSAFE_SSH_CONFIG", str(server.config))
        path = clusters_file()
        path.parent.mkdir(parents=True)
        path.write_text(
            f"[far]\nlogin = '{HOST}'\ninterpreter = '{torch_python}'\n"
            f"folder = '{tmp_path / 'shared disk'}'\nnodes = 2\npoll-seconds = 1\n"
        )
        slurm_cluster.wait_until_idle()
        yield server


def _project(folder: Path) -> Path:
    project = folder / "my project"
    project.mkdir()
    (project / "helper.py").write_text(_HELPER)
    script = project / "train it.py"
    script.write_text(_FAILS_ON_THE_SECOND_NODE)
    return script


def test_the_project_is_sent_and_a_failure_there_is_drawn_here(
    login: SshServer, tmp_path: Path
) -> None:
    script = _project(tmp_path)
    events: list[RunEvent] = []
    request = RunRequest(script, "slurm:far", launcher="torchrun", working_directory=script.parent)
    result = start_run(request, events.append).wait()
    assert result is not None
    assert result.outcome is Outcome.FAILED
    root = result.failures[0]
    assert (root.rank, root.message) == (1, "ValueError: not on this node")
    assert (root.filename, root.line) == (str(script.parent / "helper.py"), 6)
    (here,) = {event.text for event in events if event.text.startswith("here ")}
    assert here.startswith(f"here {tmp_path / 'shared disk' / 'runs'}/")
    assert here.endswith("/tree/my project")


@pytest.mark.long
def test_a_lost_connection_does_not_end_the_job(
    login: SshServer, slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import time\nfor number in range(8):\n    print(number, flush=True)\n    time.sleep(1)\n"
    )
    events: list[RunEvent] = []
    request = RunRequest(script, "slurm:far", gpus=1, launcher="python", working_directory=tmp_path)
    run = start_run(request, events.append)
    while not any(event.kind == "output" and "1" in event.lines for event in events):
        assert run.wait(0.1) is None
    login.cut()
    result = run.wait(120.0)
    assert result is not None
    assert result.outcome is Outcome.SUCCEEDED
    said = [event.text for event in events if event.kind == "status"]
    assert any("is not reached" in text for text in said)
    assert any("is reached again" in text for text in said)
    lines = _said(events)
    assert lines == [str(number) for number in range(8)]


@pytest.mark.usefixtures("login")
def test_a_project_that_does_not_fit_the_disk_there(
    slurm_cluster: SlurmCluster, small_disk: Path, tmp_path: Path
) -> None:
    described = clusters_file().read_text()
    clusters_file().write_text(
        described.replace(f"'{tmp_path / 'shared disk'}'", f"'{small_disk / 'runs'}'")
    )
    project = tmp_path / "my project"
    project.mkdir()
    (project / "train.py").write_text("pass\n")
    (project / "large.bin").write_bytes(os.urandom(30_000_000))
    request = RunRequest(
        project / "train.py", "slurm:far", gpus=1, launcher="python", working_directory=project
    )
    with pytest.raises(RunNotPossible) as caught:
        start_run(request, lambda _: None)
    assert "No space left on device" in caught.value.message.en
    assert "`folder` in clusters.toml" in caught.value.message.en
    assert "clusters.toml" in caught.value.message.zh_cn
    assert slurm_cluster.jobs() == []
    (project / "large.bin").unlink()
    result = start_run(request, lambda _: None).wait(120.0)
    assert result is not None
    assert result.outcome is Outcome.SUCCEEDED


_WAITS_ITS_TURN = """\
import os, time
from pathlib import Path
import helper

print("says", helper.TEXT, Path("settings.txt").read_text(), Path("data/set.txt").exists(), flush=True)
os.makedirs("out", exist_ok=True)
Path("out", helper.TEXT).write_text("result")
Path("settings.txt").write_text("spoiled")
time.sleep(2)
"""


def _said(events: list[RunEvent]) -> list[str]:
    return [
        line
        for event in events
        if event.kind == "output" and event.rank == 0
        for line in event.lines
    ]


@pytest.mark.long
def test_a_later_submission_changes_nothing_under_a_job_that_waits(
    login: SshServer, slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    project = tmp_path / "my project"
    project.mkdir()
    script = project / "train it.py"
    script.write_text(_WAITS_ITS_TURN)
    large = project / "weights.bin"
    large.write_bytes(b"w" * 2_000_000)
    runs, heard = [], []
    with slurm_cluster.occupied():
        for text in ("first", "second"):
            (project / "helper.py").write_text(f"TEXT = {text!r}\n")
            (project / "settings.txt").write_text(f"of {text}")
            heard.append([])
            request = RunRequest(
                script, "slurm:far", gpus=1, launcher="python", working_directory=project
            )
            runs.append(start_run(request, heard[-1].append))
            # What runs leave in the project's folder there is seen by all of them.
            (base,) = (tmp_path / "shared disk" / "projects").glob("*/my project")
            (base / "data").mkdir(exist_ok=True)
            (base / "data" / "set.txt").write_text("x")
        assert len(slurm_cluster.jobs()) == 3
    results = [run.wait(120.0) for run in runs]
    assert [result and result.outcome for result in results] == [Outcome.SUCCEEDED] * 2, heard
    assert _said(heard[0]) == ["says first of first False"]
    assert _said(heard[1]) == ["says second of second True"]
    assert {path.name for path in (base / "out").iterdir()} == {"first", "second"}
    assert (base / "settings.txt").read_text() == "of second"
    trees = sorted((tmp_path / "shared disk" / "runs").glob("*/tree/my project"))
    assert len(trees) == 2
    assert {(tree / large.name).stat().st_ino for tree in trees} == {
        (base / large.name).stat().st_ino
    }
