"""The composite action: the scripts of its steps, run as a runner does, by bash with the variables that it sets.

What a runner does with `if` and `uses` is not tried here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from environments import ROOT

from tests.cli.conftest import DEVICE_MAP

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
PROGRAM = Path(sys.executable).parent / "ranksafe"
FAILS = """\
import os
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
if rank == 1:
    raise ValueError("only rank 1 does this")
dist.barrier()
"""

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is needed")


@dataclass
class Runner:
    """A job on a runner: its checkout, and what the steps before have said."""

    folder: Path
    inputs: dict[str, str]
    outputs: dict[str, str]
    search: str = os.environ["PATH"]

    def run(self, name: str) -> tuple[int, str]:
        """One step; its status, and what it printed."""
        (step,) = [each for each in ACTION["runs"]["steps"] if each["name"] == name]
        assert step["shell"] == "bash"
        given = {name: self.evaluated(value) for name, value in step.get("env", {}).items()}
        script, said = self.folder.parent / "step.sh", self.folder.parent / "output"
        script.write_text(step["run"], encoding="utf-8")
        said.touch()
        environment = {
            "PATH": self.search,
            "HOME": str(self.folder.parent / "home"),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.folder),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(said),
            "RUNNER_TEMP": str(self.folder.parent),
            **given,
        }
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        lines = said.read_text(encoding="utf-8").splitlines()
        self.outputs |= dict(line.split("=", 1) for line in lines)
        return done.returncode, done.stdout

    def evaluated(self, value: str) -> str:
        """An expression of the kinds that the action has; any other is a KeyError."""
        known = {f"inputs.{name}": text for name, text in self.inputs.items()}
        known |= {f"steps.install.outputs.{name}": text for name, text in self.outputs.items()}
        return re.sub(r"\$\{\{ (.+?) \}\}", lambda found: known[found[1]], value)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    defaults = {name: str(each["default"]) for name, each in ACTION["inputs"].items()}
    return Runner(folder, defaults, {"program": str(PROGRAM)})


def test_findings_are_annotations_and_fail_the_step(runner: Runner) -> None:
    status, said = runner.run("ranksafe check")
    assert status == 1
    assert said.startswith("::warning title=ranksafe (RS201),file=train.py,line=5,")


@pytest.mark.parametrize(
    ("inputs", "status"),
    [
        ({"args": "--fail-on error"}, 0),
        ({"args": "--ignore RS201 --gpus 4"}, 0),
        ({"path": "train.py other"}, 0),
        ({"path": "missing.py"}, 2),
        ({"path": "*.py"}, 2),
        ({"path": "--exit-zero"}, 2),
        ({"args": "; touch evil"}, 2),
        ({"args": "$(touch evil)"}, 2),
    ],
)
def test_inputs_are_words_and_nothing_else(
    runner: Runner, inputs: dict[str, str], status: int
) -> None:
    (runner.folder / "other").mkdir()
    (runner.folder / "other" / "evil.py").write_text("x = 1\n")
    if "other" in inputs.get("path", ""):
        (runner.folder / "train.py").write_text("x = 1\n")
    runner.inputs |= inputs
    assert runner.run("ranksafe check")[0] == status
    assert not (runner.folder / "evil").exists()


@pytest.mark.parametrize(("status", "expected"), [(0, 0), (1, 1), (2, 2), (3, 0)])
def test_a_limit_of_the_simulation_fails_nothing(
    runner: Runner, status: int, expected: int
) -> None:
    ends = runner.folder.parent / "ends"
    ends.write_text(f'#!/bin/sh\nprintf "<%s>" "$@"\nexit {status}\n')
    ends.chmod(0o755)
    runner.outputs["program"] = str(ends)
    runner.inputs |= {"rehearse": "my script.py", "rehearse-args": "--gpus 4"}
    ended, said = runner.run("ranksafe rehearse")
    assert ended == expected
    assert said.startswith("<rehearse><my script.py><--python>")
    assert said.endswith("<--gpus><4>")


@pytest.mark.long
@pytest.mark.parametrize("version", ["", "0"])
def test_it_installs_itself_or_a_version(runner: Runner, version: str) -> None:
    runner.inputs["version"] = version
    runner.outputs.clear()
    status, said = runner.run("Install ranksafe")
    if version:
        assert status != 0
        assert "ranksafe==0" in said
        return
    assert status == 0, said
    program = Path(runner.outputs["program"])
    assert program.is_relative_to(runner.folder.parent)
    assert runner.run("ranksafe check")[0] == 1


@pytest.mark.long
@pytest.mark.torch
def test_a_rehearsal_takes_the_torch_of_the_python_on_path(runner: Runner) -> None:
    torch = os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")
    if torch is None:
        pytest.skip("RANKSAFE_TEST_TORCH_PYTHON names no Python with torch")
    (runner.folder / "fails.py").write_text(FAILS, encoding="utf-8")
    runner.search = os.pathsep.join([str(Path(torch).parent), runner.search])
    runner.inputs |= {"rehearse": "fails.py", "rehearse-args": "--gpus 2 --timeout 300"}
    status, said = runner.run("ranksafe rehearse")
    assert status == 1, said
    assert "::error title=ranksafe" in said
    assert "file=fails.py,line=9" in said
    assert "only rank 1 does this" in said
