"""What is decided before a local run starts: interpreter, devices, command."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

import pytest
from ranksafe.rehearsal.settings import RehearsalOptions
from ranksafe.runs.directory import KEPT_RUNS, new_run_directory, prune, release
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.gpus import Gpu, choose_gpus, list_gpus
from ranksafe.runs.interpreter import Interpreter, find_interpreter, inspect_interpreter
from ranksafe.runs.launch_plan import Style, launch_command, style_of
from ranksafe.runs.model import RunRequest
from ranksafe.runs.start import start_run
from ranksafe.runs.targets import target_named

# Real answers of nvidia-smi 550 in shape; the processes are this test's own and init.
_DEVICES = """\
0, GPU-aaaa, NVIDIA H100, 4, 81000, 0, Default, [N/A]
1, GPU-bbbb, NVIDIA H100, 30000, 51000, 97, Default, Disabled
2, GPU-cccc, NVIDIA H100, 4, 80000, 0, Default, Enabled
3, GPU-dddd, NVIDIA H100, 4, 81050, 0, Prohibited, Disabled
4, GPU-eeee, NVIDIA H100, 900, 80000, 0, Default, Disabled
5, GPU-ffff, NVIDIA H100, [N/A], [N/A], [N/A], Default, Disabled
6, GPU-0000, NVIDIA H100, 4, 81020, 0, Default, Disabled
"""
_PROCESSES = f"GPU-bbbb, {os.getpid()}, 29000\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    return folder


def _program(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Gpu]:
    """The devices of a program called nvidia-smi that answers like the real one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "devices").write_text(_DEVICES)
    (folder / "processes").write_text(_PROCESSES)
    _program(
        folder / "nvidia-smi",
        f'#!/bin/sh\ncase "$1" in --query-gpu*) cat {folder}/devices;; *) cat {folder}/processes;; esac\n',
    )
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return list_gpus()


def test_only_devices_that_nobody_uses_are_taken_and_the_others_are_explained(
    gpus: list[Gpu],
) -> None:
    choice = choose_gpus(gpus, None, {})
    choice.release()
    assert [gpu.uuid for gpu in choice.chosen] == ["GPU-aaaa", "GPU-0000"]
    reasons = {gpu.index: reason.en for gpu, reason in choice.left_out}
    assert "pid" in reasons[1]
    assert "29000 MiB" in reasons[1]
    assert "MIG" in reasons[2]
    assert "Prohibited" in reasons[3]
    assert "900 MiB used" in reasons[4]
    assert "unknown" in reasons[5]


def test_never_more_devices_than_asked_for_and_most_memory_first(gpus: list[Gpu]) -> None:
    choice = choose_gpus(gpus, 1, {})
    choice.release()
    assert [gpu.uuid for gpu in choice.chosen] == ["GPU-0000"]


def test_the_users_own_choice_of_devices_is_kept(gpus: list[Gpu]) -> None:
    choice = choose_gpus(gpus, None, {"CUDA_VISIBLE_DEVICES": "0,1"})
    choice.release()
    assert [gpu.index for gpu in choice.chosen] == [0]


def test_two_runs_do_not_share_a_device(gpus: list[Gpu]) -> None:
    first = choose_gpus(gpus, 1, {})
    second = choose_gpus(gpus, 2, {})
    assert not {gpu.uuid for gpu in first.chosen} & {gpu.uuid for gpu in second.chosen}
    first.release()
    second.release()
    again = choose_gpus(gpus, 2, {})
    again.release()
    assert len(again.chosen) == 2


def test_no_program_no_devices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list_gpus() == []


@pytest.mark.parametrize(
    ("source", "style"),
    [
        ("from accelerate import Accelerator\n", Style.ACCELERATE),
        (
            "from transformers import Trainer\nimport os; os.environ['LOCAL_RANK']\n",
            Style.ACCELERATE,
        ),
        ("import torch.distributed as dist\ndist.init_process_group('nccl')\n", Style.TORCHRUN),
        ("rank = int(os.environ['LOCAL_RANK'])\n", Style.TORCHRUN),
        ("mp.spawn(work, nprocs=2)\n", Style.PYTHON),
        ("model = nn.DataParallel(model)\n", Style.PYTHON),
        ("import jax.numpy as jnp\n", Style.PYTHON),
        ("model = DistributedDataParallel(model)\ndist.init_process_group()\n", Style.TORCHRUN),
        (
            "# dist.init_process_group is for later\nimport torch\nfrom my import loop",
            Style.ACCELERATE,
        ),
        ("# dist.init_process_group is for later\nimport torch, os\n", Style.PYTHON),
        ("import torch\nfrom torchvision import datasets\nfrom tqdm import tqdm\n", Style.PYTHON),
        ("import torch\nfrom torch.nn.parallel import DistributedDataParallel\n", Style.ACCELERATE),
        ("import lightning\n", Style.ACCELERATE),
        ("import torch, os as system\n", Style.PYTHON),
        ("import torch, mine\n", Style.ACCELERATE),
        ("import torch, deepspeed\nengine = deepspeed.initialize(model=net)[0]\n", Style.TORCHRUN),
        (
            "from transformers import AutoModel\nimport deepspeed\ndeepspeed.init_distributed()\n",
            Style.TORCHRUN,
        ),
    ],
)
def test_the_script_decides_on_its_launcher(source: str, style: Style) -> None:
    assert style_of(source, accelerate_installed=True, may_be_alone=True) is style


def test_who_asks_for_several_gpus_means_several_ranks() -> None:
    assert style_of("import torch\n", accelerate_installed=True) is Style.ACCELERATE


_WITH_ALL = Interpreter(
    Path("/env/bin/python"), "3.12", {"torch": "2.13", "accelerate": "1.15"}, None
)


def _script(folder: Path, text: str = "from accelerate import Accelerator\n") -> Path:
    path = folder / "train it.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_accelerate_is_told_everything_explicitly(tmp_path: Path) -> None:
    request = RunRequest(_script(tmp_path), arguments=("--lr", "$(touch x)"))
    command, ranks = launch_command(request, _WITH_ALL, 4, tmp_path)
    assert ranks == 4
    assert command[:3] == ("/env/bin/python", "-m", "accelerate.commands.launch")
    for option in (
        "--multi_gpu",
        "--num_machines",
        "--num_processes",
        "--mixed_precision",
        "--dynamo_backend",
    ):
        assert option in command
    assert command[-3:] == (str(tmp_path / "train it.py"), "--lr", "$(touch x)")
    assert "--cpu" not in command


def test_a_chosen_configuration_is_not_overridden(tmp_path: Path) -> None:
    config = tmp_path / "fsdp.yaml"
    config.write_text("distributed_type: FSDP\n")
    request = RunRequest(_script(tmp_path), config_file=config)
    command, ranks = launch_command(request, _WITH_ALL, 4, tmp_path)
    assert ranks is None
    assert command[3:] == ("--config_file", str(config), str(tmp_path / "train it.py"))


def test_one_rank_that_stands_for_all_of_a_configuration_is_started_alone(tmp_path: Path) -> None:
    config = tmp_path / "fsdp.yaml"
    config.write_text("distributed_type: FSDP\nnum_machines: 2\nnum_processes: 16\n")
    options = RehearsalOptions(stands_for=16)
    request = RunRequest(_script(tmp_path), config_file=config, rehearsal=options)
    command, ranks = launch_command(request, _WITH_ALL, 1, tmp_path)
    assert ranks is None
    assert "--num_processes 1 --num_machines 1" in " ".join(command)


def test_the_default_configuration_of_the_user_is_kept_out(tmp_path: Path) -> None:
    default = tmp_path / "hub" / "accelerate" / "default_config.yaml"
    default.parent.mkdir(parents=True)
    default.write_text("distributed_type: FSDP\n")
    request = RunRequest(_script(tmp_path), environment={"HF_HOME": str(tmp_path / "hub")})
    command, _ = launch_command(request, _WITH_ALL, 2, tmp_path)
    ours = Path(command[command.index("--config_file") + 1])
    assert "MULTI_GPU" in ours.read_text()


@pytest.mark.parametrize("missing", ["torch", "accelerate"])
def test_what_is_not_installed_is_named_with_its_command(tmp_path: Path, missing: str) -> None:
    versions = {"torch": "2.13", "accelerate": "1.15"}
    del versions[missing]
    config = tmp_path / "c.yaml"
    config.write_text("")
    request = RunRequest(_script(tmp_path), config_file=config)
    interpreter = Interpreter(Path("/env/bin/python"), "3.12", versions, None)
    with pytest.raises(RunNotPossible) as caught:
        launch_command(request, interpreter, 2, tmp_path)
    assert f"pip install {missing}" in caught.value.message.en
    assert missing in caught.value.message.zh_cn


def test_the_projects_environment_is_found(tmp_path: Path) -> None:
    environment = tmp_path / ".venv"
    (environment / "bin").mkdir(parents=True)
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (environment / "bin" / "python").symlink_to(sys.executable)
    folder = tmp_path / "src"
    folder.mkdir()
    found = find_interpreter(RunRequest(_script(folder)))
    assert found == environment / "bin" / "python"


def test_a_vanished_interpreter_is_named(tmp_path: Path) -> None:
    request = RunRequest(_script(tmp_path), interpreter=tmp_path / "gone" / "python")
    with pytest.raises(RunNotPossible) as caught:
        start_run(request, lambda event: None)
    assert "gone" in caught.value.message.en
    assert "解释器" in caught.value.message.zh_cn


def test_a_number_of_ranks_that_no_machine_should_meet_is_refused(tmp_path: Path) -> None:
    request = RunRequest(
        _script(tmp_path), interpreter=Path(sys.executable), cpu_ranks=True, gpus=10**9
    )
    with pytest.raises(RunNotPossible) as caught:
        start_run(request, lambda event: None)
    assert "1000000000 ranks are too many" in caught.value.message.en
    assert "1000000000 个 rank" in caught.value.message.zh_cn


def test_an_interpreter_that_breaks_is_quoted(tmp_path: Path) -> None:
    broken = _program(tmp_path / "python", "#!/bin/sh\necho no libpython here >&2\nexit 127\n")
    with pytest.raises(RunNotPossible) as caught:
        inspect_interpreter(broken, os.environ)
    assert "no libpython here" in caught.value.message.en


def test_a_missing_script_is_named(tmp_path: Path) -> None:
    request = RunRequest(tmp_path / "none.py")
    with pytest.raises(RunNotPossible) as caught:
        launch_command(request, _WITH_ALL, 2, tmp_path)
    assert "none.py" in caught.value.message.en


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(RunNotPossible):
        target_named("mars")


def test_a_cache_that_cannot_be_written_costs_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    directory, told = new_run_directory()
    assert directory.parent.parent == tmp_path
    assert stat.S_IMODE(directory.parent.stat().st_mode) == 0o700
    assert told is not None
    assert str(directory) in told.en


def test_a_folder_of_temporary_files_that_others_made_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"ranksafe-runs-{os.getuid()}").symlink_to(tmp_path)
    with pytest.raises(RunNotPossible) as caught:
        new_run_directory()
    assert "XDG_CACHE_HOME" in caught.value.message.en


def test_a_full_disk_is_explained() -> None:
    with pytest.raises(RunNotPossible) as caught:
        new_run_directory(needed_bytes=2**62)
    assert "No space left" in caught.value.message.en
    assert "磁盘" in caught.value.message.zh_cn


def test_old_runs_are_deleted_but_not_those_that_go_on(cache: Path) -> None:
    kept, _ = new_run_directory()
    runs = kept.parent
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    for number in range(KEPT_RUNS + 5):
        (runs / f"30000101-000000-{number:06}").mkdir()
    prune(runs)
    assert kept.exists()
    assert len(list(runs.iterdir())) == KEPT_RUNS + 1
    release(kept)
    prune(runs)
    assert not kept.exists()
