"""The test cluster as a user has it: described in the settings, a project of the user's, and runs there."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ranksafe.runs.model import RunEvent, RunRequest, RunResult
from ranksafe.runs.start import Run, start_run
from ranksafe.runs.targets.slurm.settings import clusters_file

from .slurm_cluster import SlurmCluster

LONGEST_SECONDS = 120.0
TWO_NODES = {"nodes": 2, "gpus-per-node": 1}
PLAIN = """\
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
        return [line for event in self.events if event.kind == kind for line in event.lines]

    def output_of(self, rank: int | None) -> list[str]:
        """The lines of a rank, or of the nodes' launchers."""
        return [
            line
            for each in self.events
            if each.kind == "output" and each.rank == rank
            for line in each.lines
        ]

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
    return cluster_of(slurm_cluster, torch_python, tmp_path, monkeypatch)


def cluster_of(
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


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 24 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("needs the right to mount: sudo")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
