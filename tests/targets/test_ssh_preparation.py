"""What is decided before a run starts on a host: reachable, interpreter, devices, room."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from ranksafe.cli.main import main
from ranksafe.runs.attach import waiting_runs
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.model import Outcome, RunRequest
from ranksafe.runs.remote.host_settings import named_hosts
from ranksafe.runs.targets import target_named
from ranksafe.runs.targets.protocol import Listener

from .far_host import TARGET, Far

_DEVICES = """\
0, GPU-aaaa, NVIDIA H100, 4, 81000, 0, Default, Disabled
1, GPU-bbbb, NVIDIA H100, 30000, 51000, 97, Default, Disabled
2, GPU-cccc, NVIDIA H100, 4, 81020, 0, Default, [N/A]
"""
_SHOW = "import os\nprint('devices', os.environ['CUDA_VISIBLE_DEVICES'])\n"


class NvidiaSmi:
    """A program on the host that answers like the real one."""

    def __init__(self, folder: Path, processes: Path) -> None:
        self.devices = processes.with_name("devices")
        self.processes = processes
        self.before_start = processes.with_name("before-start")
        self.program = folder / "nvidia-smi"
        self.devices.write_text(_DEVICES)
        self.processes.write_text(f"GPU-bbbb, {os.getpid()}, 29000\n")
        self.program.write_text(
            "#!/bin/sh\n"
            'case "$1" in\n'
            f"--query-gpu=index,*) cat '{self.devices}';;\n"
            f"--query-gpu=driver*) echo 570.1;;\n"
            f"--query-gpu=uuid,*) cut -d, -f2,4 '{self.devices}';;\n"
            f"--query-compute-apps=gpu_uuid,pid,*) cat '{self.processes}';;\n"
            f"*) cat '{self.before_start}' '{self.processes}' 2>/dev/null;;\n"
            "esac\n"
        )
        self.program.chmod(0o755)


@pytest.fixture
def nvidia_smi(far: Far, tmp_path: Path) -> Iterator[NvidiaSmi]:
    program = NvidiaSmi(far.server.programs, tmp_path / "processes")
    yield program
    program.program.unlink()


@pytest.fixture
def cuda_python(far: Far, tmp_path: Path) -> Path:
    """An interpreter whose torch is a CUDA build, as far as one can see without importing it."""
    environment = tmp_path / "cuda-env"
    subprocess.run(
        ["/usr/bin/env", "python3", "-m", "venv", "--without-pip", str(environment)], check=True
    )
    packages = next(environment.glob("lib/python3*/site-packages"))
    (packages / "torch").mkdir()
    (packages / "torch" / "__init__.py").write_text("raise SystemExit('nobody imports torch')\n")
    (packages / "torch" / "version.py").write_text("cuda: Optional[str] = '12.8'\n")
    (packages / "torch-2.13.0.dist-info").mkdir()
    (packages / "torch-2.13.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n"
    )
    far.settle(interpreter=str(environment / "bin" / "python"))
    return environment / "bin" / "python"


def test_free_devices_are_taken_by_uuid_and_the_others_are_explained(
    far: Far, nvidia_smi: NvidiaSmi, cuda_python: Path
) -> None:
    result = far.run(far.write("train.py", _SHOW))
    assert far.said("output") == ["devices GPU-cccc,GPU-aaaa"]
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    assert any(
        f"GPU 1 left out: in use by {user} (pid {os.getpid()}, 29000 MiB)" in each
        for each in result.limits
    )


def test_never_more_devices_than_asked_for(
    far: Far, nvidia_smi: NvidiaSmi, cuda_python: Path
) -> None:
    far.run(far.write("train.py", _SHOW), gpus=1)
    assert far.said("output") == ["devices GPU-cccc"]


def test_no_gpus_free(far: Far, nvidia_smi: NvidiaSmi, cuda_python: Path) -> None:
    with pytest.raises(
        RunNotPossible, match=r"3 free GPUs are needed on gpu-box, 2 are free \(GPU 1 left out"
    ):
        far.run(far.write("train.py", _SHOW), gpus=3)


def test_devices_that_are_taken_in_the_meantime(
    far: Far, nvidia_smi: NvidiaSmi, cuda_python: Path
) -> None:
    nvidia_smi.before_start.write_text(f"GPU-cccc, {os.getpid()}\n")
    with pytest.raises(RunNotPossible, match="were taken while the run was prepared: 1 are left"):
        far.run(far.write("train.py", _SHOW), gpus=2)
    assert waiting_runs() == []
    far.run(far.write("train.py", _SHOW), gpus=1)
    assert far.said("output") == ["devices GPU-aaaa"]


@pytest.mark.long
def test_two_runs_of_ours_share_no_device(
    far: Far, nvidia_smi: NvidiaSmi, cuda_python: Path
) -> None:
    script = far.write("train.py", _SHOW + "import sys, time\nsys.stdout.flush()\ntime.sleep(60)\n")
    first = far.start(script, gpus=1)
    with pytest.raises(RunNotPossible, match="were taken"):
        far.start(script, gpus=2)
    first.cancel()
    assert first.wait(60) is not None
    second = far.start(script, gpus=2)
    second.cancel()
    assert second.wait(60) is not None


def test_cpu_ranks_instead_of_devices_are_said(
    far: Far, nvidia_smi: NvidiaSmi, cuda_python: Path
) -> None:
    result = far.run(far.write("train.py", _SHOW), cpu_ranks=True)
    assert far.said("output") == ["devices "]
    assert any("as chosen" in each for each in result.limits)


def test_the_users_wrong_interpreter_is_named(far: Far) -> None:
    far.settle(interpreter="/no/such/python")
    with pytest.raises(
        RunNotPossible, match=r"/no/such/python on gpu-box does not run: no such program"
    ):
        far.run(far.write("train.py", "pass\n"))
    with pytest.raises(RunNotPossible, match=r"/bin/false on gpu-box does not run"):
        far.run(far.write("train.py", "pass\n"), interpreter=Path("/bin/false"))


def test_what_a_launcher_needs_must_be_there(far: Far) -> None:
    with pytest.raises(RunNotPossible, match="torch is not installed"):
        far.run(far.write("train.py", "pass\n"), launcher="torchrun")


@pytest.mark.long
def test_the_environment_in_the_projects_folder_there_is_found(far: Far, tmp_path: Path) -> None:
    script = far.write("train.py", "import sys\nprint('prefix', sys.prefix)\n")
    far.write(".gitignore", ".venv\n")
    far.run(script)
    folder = next((far.base / "projects").glob("*/my project"))
    subprocess.run(
        ["/usr/bin/env", "python3", "-m", "venv", "--without-pip", str(folder / ".venv")],
        check=True,
    )
    far.settings.write_text(f'["gpu-box"]\nfolder = "{far.base}"\ndespite-slurm = true\n')
    far.run(script)
    assert far.said("output")[-1] == f"prefix {folder / '.venv'}"


def test_an_unknown_host_key_stops_everything(far: Far) -> None:
    far.config.write_text("UserKnownHostsFile /dev/null\n" + far.config.read_text())
    with pytest.raises(RunNotPossible, match="Run `ssh gpu-box` in a terminal once"):
        far.run(far.write("train.py", "pass\n"))
    assert not far.base.exists()


def test_a_script_that_is_not_sent(far: Far) -> None:
    script = far.write("train.py", "pass\n")
    far.write(".gitignore", "train.py\n")
    with pytest.raises(RunNotPossible, match="is ignored by git"):
        far.run(script)


def test_too_little_room_there(far: Far, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(small)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("needs the right to mount: sudo")
    far.base = small / "ranksafe"
    far.settle()
    try:
        with pytest.raises(RunNotPossible, match=r"has 1 MB left; \d+ MB are needed"):
            far.run(far.write("train.py", "pass\n"))
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_a_disk_there_that_fills_while_it_runs(far: Far, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(small)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("needs the right to mount: sudo")
    far.base = small / "ranksafe"
    far.settle()
    script = far.write(
        "train.py",
        "with open('checkpoint.bin', 'wb') as file:\n    for _ in range(100):\n        file.write(b'0' * 1_000_000)\n",
    )
    try:
        result = far.run(script)
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)
    assert result.outcome is Outcome.FAILED
    assert any("is full" in each for each in far.said("status"))


def test_a_node_of_a_cluster_is_left_to_its_scheduler(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.settings.write_text(f'[gpu-box]\nfolder = "{far.base}"\n')
    sleeper = far.project / "slurmd"
    sleeper.symlink_to("/bin/sleep")
    process = subprocess.Popen([str(sleeper), "60"])
    try:
        with pytest.raises(RunNotPossible, match="use the target slurm:NAME"):
            far.run(far.write("train.py", "pass\n"))
    finally:
        process.kill()
        process.wait()


def test_doctor_tells_of_the_host(
    far: Far,
    nvidia_smi: NvidiaSmi,
    cuda_python: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(far.project)
    status = main(["doctor", "--target", TARGET])
    told = capsys.readouterr().out
    assert status == 2  # no accelerate there
    for expected in (
        r"^gpu-box: .*, as user ",
        rf"^Python 3\.\d+\.\d+: {cuda_python}$",
        r"^torch 2\.13\.0$|^torch 2\.13\.0 \(here: ",
        r"^torch built for CUDA 12\.8$",
        r"^NVIDIA driver 570\.1$",
        r"^GPU 0 \(NVIDIA H100, 81000 MiB free\): free$",
        r"^GPU 1 .*in use by .*29000 MiB",
        r"^disk at .*GiB free$",
        r"^shared memory \(/dev/shm\): ",
        r"^memory: .* cores$",
        r"^network: ",
    ):
        assert re.search(expected, told, re.MULTILINE), (expected, told)
    assert main(["--lang", "zh-cn", "doctor", "--target", TARGET]) == 2
    assert "共享内存" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        "[gpu-box]\nfolder = 3\n",
        "[gpu-box]\nlease-hours = -1\n",
        "[gpu-box]\nproxy = 'x'\n",
        "gpu-box = 1\n",
        "[",
        "[gpu-box]\ndespite-slurm = 1\n",
    ],
)
def test_settings_that_cannot_be_understood_are_named(far: Far, text: str) -> None:
    far.settings.write_text(text)
    with pytest.raises(RunNotPossible, match=r"hosts\.toml cannot be understood"):
        far.run(far.write("train.py", "pass\n"))


def test_the_hosts_of_the_settings_are_known(far: Far) -> None:
    assert named_hosts() == ["gpu-box"]
    far.settings.write_text("[")
    assert named_hosts() == []


@pytest.mark.parametrize("name", ["ssh:", "ssh:-oProxyCommand=x", "ssh:a b", "ssh:a;b"])
def test_what_is_no_name_of_a_host_is_no_target(name: str) -> None:
    with pytest.raises(RunNotPossible, match="no name of a host"):
        target_named(name)


def test_the_workspace_names_no_interpreter_of_the_host(far: Far) -> None:
    request = RunRequest(far.write("train.py", "pass\n"), TARGET, working_directory=far.project)
    far.write(".vscode/settings.json", '{"ranksafe.interpreter": "/bin/false"}')
    far.write("hosts.toml", '[gpu-box]\ninterpreter = "/bin/false"\n')
    told = target_named(TARGET).probe(request, Listener())
    assert not any("/bin/false" in each.en for each in told)
