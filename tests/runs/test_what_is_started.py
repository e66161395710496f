"""A module, a shell script: which file is started, and how."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ranksafe.runs.agent import INJECT_DIRECTORY
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.model import RunRequest
from ranksafe.runs.shell_script import launch_in
from ranksafe.runs.what_is_started import with_its_file


def _request(folder: Path, script: Path = Path(), module: str = "") -> RunRequest:
    return RunRequest(
        script=script,
        module=module,
        interpreter=Path(sys.executable),
        working_directory=folder,
        environment={"PYTHONPATH": str(folder)},
    )


@pytest.fixture
def package(tmp_path: Path) -> Path:
    inside = tmp_path / "training" / "jobs"
    inside.mkdir(parents=True)
    (tmp_path / "training" / "__init__.py").write_text("raise SystemExit('imported')")
    (inside / "__init__.py").touch()
    (inside / "__main__.py").write_text("print('package')")
    (inside / "one.py").write_text("print('module')")
    return tmp_path


@pytest.mark.parametrize(
    ("module", "file"), [("training.jobs.one", "one.py"), ("training.jobs", "__main__.py")]
)
def test_a_module_is_found_without_importing_its_packages(
    package: Path, module: str, file: str
) -> None:
    found = with_its_file(_request(package, module=module))
    assert found.script == package / "training" / "jobs" / file


def test_a_module_that_is_not_there_is_named(package: Path) -> None:
    with pytest.raises(RunNotPossible, match=r"training\.jobs\.two"):
        with_its_file(_request(package, module="training.jobs.two"))


def test_the_agent_knows_a_module_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text("print('hello')")
    run = tmp_path / "run"
    run.mkdir()
    variables = {
        "PYTHONPATH": os.pathsep.join([str(INJECT_DIRECTORY), str(tmp_path)]),
        "RANKSAFE_RUN_DIRECTORY": str(run),
        "RANKSAFE_RUN_SCRIPT": str(tmp_path / "alone.py"),
        "RANKSAFE_RUN_MODULE": "alone",
    }
    for module, files in (("json.tool", []), ("alone", ["rank0.stdout"])):
        subprocess.run(
            [sys.executable, "-u", "-m", module],
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert [path.name for path in run.glob("rank0.stdout")] == files
    assert (run / "rank0.stdout").read_text() == "hello\n"


@pytest.mark.parametrize(
    ("text", "style", "started", "arguments"),
    [
        ("torchrun --standalone --nproc_per_node=8 train.py --lr 1e-3", "torchrun", "train.py", "--lr 1e-3"),
        ("python -m torch.distributed.launch --nproc_per_node 4 --use_env src/a.py", "torchrun", "src/a.py", ""),
        ("export CUDA_VISIBLE_DEVICES=0,1\naccelerate launch --multi_gpu --num_processes 2 \\\n  train.py \\\n  --name 'a b'", "accelerate", "train.py", "--name|a b"),
        ("N=${1:-4}\nMODEL=gpt2\npython3 -u train.py --model ${MODEL} -n $N \"$@\"", "python", "train.py", "--model gpt2 -n 7 7 --x"),
        ("set -e\nmkdir -p out && deepspeed --num_gpus=4 --module pkg.train --zero 3 2>&1", "deepspeed", "pkg.train", "--zero 3"),
        ("fabric run --devices 2 --strategy ddp fit.py", "fabric", "fit.py", ""),
        ("srun --ntasks=2 python train.py", "python", "train.py", ""),
    ],
)  # fmt: skip
def test_a_shell_script_says_what_it_starts(
    tmp_path: Path, text: str, style: str, started: str, arguments: str
) -> None:
    path = tmp_path / "run.sh"
    path.write_text(text)
    launch = launch_in(path, ("7", "--x"))
    assert launch.style.value == style
    assert (launch.script or launch.module) == started
    wanted = arguments.split("|") if "|" in arguments else arguments.split()
    assert [word for word in launch.arguments if not word.startswith("2>")] == wanted
    assert "CUDA_VISIBLE_DEVICES" not in launch.environment


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mpirun -np 4 python train.py", "mpirun"),
        ("echo done", "no Python script"),
        ("python a.py\npython b.py", "a.py; python b.py"),
        ("torchrun $SCRIPT", "variables"),
    ],
)
def test_what_a_shell_script_does_not_say_is_told(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "run.sh"
    path.write_text(text)
    with pytest.raises(RunNotPossible, match=said):
        launch_in(path)


def test_a_shell_script_becomes_a_launch(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("EPOCHS=3 torchrun --nproc_per_node 8 train.py --fast")
    found = with_its_file(_request(tmp_path, script=tmp_path / "run.sh"))
    assert (found.script, found.launcher) == (tmp_path / "train.py", "torchrun")
    assert found.arguments == ("--fast",)
    assert found.environment["EPOCHS"] == "3"
