"""What is decided before a rehearsal starts: devices, ranks, environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ranksafe.rehearsal.device_models import device_model
from ranksafe.rehearsal.settings import SETTINGS_VARIABLE, NativeFiles, RehearsalOptions, Shrink
from ranksafe.runs.errors import RunCancelled, RunNotPossible
from ranksafe.runs.interpreter import Interpreter
from ranksafe.runs.launch_plan import Node, launch_command
from ranksafe.runs.model import RunRequest
from ranksafe.runs.simulated_devices import (
    INJECT_DIRECTORY,
    SimulatedDevices,
    give_devices,
    make_devices,
    settings_for,
)
from ranksafe.runs.start import start_run
from ranksafe.runs.targets import target_named

SCRIPT = Path("train.py")
_DEVICES = SimulatedDevices(device_model("l4"), 2**30, NativeFiles((), "/d.so", "/n.so"))


@pytest.mark.parametrize("name", ["simulated", "simulated:2", "simulated:16"])
def test_a_target_is_named_by_its_devices(name: str) -> None:
    assert target_named(name).name == name


@pytest.mark.parametrize(
    "name", ["simulated:", "simulated:0", "simulated:-1", "simulated:x", "sim"]
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(RunNotPossible):
        target_named(name)


@pytest.mark.parametrize(
    ("target", "gpus", "nodes", "expected"),
    [
        ("simulated", None, 1, (2, 2)),
        ("simulated", 4, 1, (4, 4)),
        ("simulated:4", None, 1, (4, 4)),
        ("simulated:4", 2, 1, (4, 2)),
        ("simulated:4", None, 2, (4, 8)),
        ("simulated", 3, 2, (3, 6)),
    ],
)
def test_every_device_gets_a_rank_unless_fewer_are_wanted(
    target: str, gpus: int | None, nodes: int, expected: tuple[int, int]
) -> None:
    request = RunRequest(SCRIPT, target, gpus, rehearsal=RehearsalOptions(nodes=nodes))
    assert target_named(target).counts(request) == expected  # type: ignore[attr-defined]


@pytest.mark.parametrize(("target", "gpus"), [("simulated:2", 3), ("simulated:65", None)])
def test_numbers_that_do_not_fit_are_refused(target: str, gpus: int | None) -> None:
    with pytest.raises(RunNotPossible):
        target_named(target).counts(RunRequest(SCRIPT, target, gpus))  # type: ignore[attr-defined]


def test_every_process_is_told_the_same(tmp_path: Path) -> None:
    options = RehearsalOptions(nodes=2, shrink=Shrink.ON, short_epochs=True)
    settings = settings_for(
        _DEVICES, options, per_node=4, script=SCRIPT, directory=tmp_path, offline=True
    )
    assert (settings.devices, settings.nodes, settings.short_epochs) == (4, 2, True)
    assert (settings.device_name, settings.capability) == ("NVIDIA L4", (8, 9))
    assert (settings.memory_bytes, settings.shrink, settings.offline) == (2**30, "on", True)
    assert Path(settings.agent_directory, "ranksafe_agent").is_dir()
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert settings.host_memory_bytes is not None
    assert 0 < settings.host_memory_bytes < memory


def test_what_speaks_of_real_devices_is_not_inherited_unless_chosen_for_this_run(
    tmp_path: Path,
) -> None:
    given = {"CUDA_VISIBLE_DEVICES": "3", "PYTHONPATH": "/mine", "PATH": "/bin"}
    environment = dict(given)
    give_devices(environment, tmp_path / "rehearsal.json", 2)
    assert "CUDA_VISIBLE_DEVICES" not in environment
    assert environment["PYTHONPATH"].split(os.pathsep) == [str(INJECT_DIRECTORY), "/mine"]
    assert environment["PATH"].split(os.pathsep) == [str(INJECT_DIRECTORY / "bin"), "/bin"]
    assert environment[SETTINGS_VARIABLE] == str(tmp_path / "rehearsal.json")
    assert int(environment["OMP_NUM_THREADS"]) >= 1
    environment = dict(given)
    give_devices(environment, tmp_path / "rehearsal.json", 2, chosen=given)
    assert environment["CUDA_VISIBLE_DEVICES"] == "3"


@pytest.mark.parametrize(
    ("launcher", "expected"),
    [("python", "-u"), ("torchrun", "torch.distributed.run"), ("accelerate", "accelerate.commands.launch")],
)  # fmt: skip
def test_the_chosen_launcher_outranks_the_scripts_text(
    tmp_path: Path, launcher: str, expected: str
) -> None:
    script = tmp_path / "train.py"
    script.write_text("mp.spawn(work)\n")
    python = Interpreter(Path("/p"), "3.12", {"torch": "2.13", "accelerate": "1.15"}, None)
    request = RunRequest(script, launcher=launcher)  # type: ignore[arg-type]
    assert expected in launch_command(request, python, 2, tmp_path)[0]


@pytest.mark.parametrize("launcher", ["torchrun", "accelerate"])
def test_each_node_has_a_launcher_that_knows_the_others(tmp_path: Path, launcher: str) -> None:
    script = tmp_path / "train.py"
    script.write_text("")
    request = RunRequest(script, launcher=launcher)  # type: ignore[arg-type]
    python = Interpreter(Path("/p"), "3.12", {"torch": "2.13", "accelerate": "1.15"}, None)
    nodes = [Node(index, 2, 29501) for index in range(2)]
    commands = [launch_command(request, python, 4, tmp_path, node) for node in nodes]
    assert [ranks for _, ranks in commands] == [8, 8]
    first, second = (" ".join(command) for command, _ in commands)
    if launcher == "torchrun":
        assert "--nproc_per_node=4 --nnodes=2 --node_rank=0 --master_addr=127.0.0.1" in first
        assert "--node_rank=1" in second
    else:
        assert "--multi_gpu --num_processes 8" in first
        assert "--num_machines 2 --main_process_port 29501 --machine_rank 0" in first
        assert "--machine_rank 1" in second
    assert "29501" in second


def test_several_nodes_need_a_launcher(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("mp.spawn(work)\n")
    python = Interpreter(Path("/p"), "3.12", {"torch": "2.13", "accelerate": "1.15"}, None)
    with pytest.raises(RunNotPossible):
        launch_command(RunRequest(script), python, 4, tmp_path, Node(0, 2, 29501))


def test_a_launcher_and_another_ones_configuration_do_not_fit(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("")
    request = RunRequest(script, launcher="torchrun", config_file=script)
    python = Interpreter(Path("/p"), "3.12", {"torch": "2.13", "accelerate": "1.15"}, None)
    with pytest.raises(RunNotPossible):
        launch_command(request, python, 2, tmp_path)


def test_an_unknown_device_is_refused_with_those_there_are() -> None:
    options = RehearsalOptions(device_model="a9000")
    with pytest.raises(RunNotPossible) as caught:
        make_devices(Path("/python"), {}, options, lambda _: None, lambda: False)
    assert "rtx4090" in caught.value.message.en


@pytest.mark.torch
def test_compiling_can_be_cancelled_and_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torch_python: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    script = tmp_path / "train.py"
    script.write_text("import torch\n")
    told: list[str] = []
    with pytest.raises(RunCancelled):
        start_run(
            RunRequest(script, "simulated:2", interpreter=torch_python),
            lambda event: told.append(event.text),
            should_stop=lambda: bool(told),
        )
    assert "2.13" in told[0]
    assert not list((tmp_path / "cache" / "ranksafe" / "runs").glob("*/in-use"))
