"""Scripts on simulated GPUs without a target: what the target would set up is set up here, and nothing is explained."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from ranksafe.rehearsal.errors import RehearsalNotPossible
from ranksafe.rehearsal.isolation import probe
from ranksafe.rehearsal.native import native_files
from ranksafe.rehearsal.settings import SETTINGS_VARIABLE, NativeFiles, ProcessSettings

SERVER = Path(__file__).parents[2] / "server" / "ranksafe"
AGENT = SERVER / "runs" / "agent" / "inject"
INJECTED = SERVER / "rehearsal" / "inject"
LONGEST_SECONDS = 240.0
_NO_TORCH = (
    "RANKSAFE_TEST_TORCH_PYTHON names no Python with torch and accelerate (make test sets it up)"
)
_OF_OTHER_LAUNCHES = ("CUDA_VISIBLE_DEVICES", "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT")
_WRITES_PIECES = "PYTHONUNBUFFERED"


@dataclass(frozen=True)
class RehearsalEnvironment:
    """An interpreter with torch, and the files that give it simulated devices."""

    interpreter: Path
    native: NativeFiles


@dataclass(frozen=True)
class Rehearsed:
    """How a rehearsal ended."""

    returncode: int
    stdout: str
    stderr: str
    journal: list[dict[str, Any]]
    """Every event of every process, ordered within a process only."""
    directory: Path
    """The run directory."""

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The events whose ``event`` is ``kind``."""
        return [event for event in self.journal if event.get("event") == kind]

    @property
    def lines(self) -> list[str]:
        """What was printed."""
        return self.stdout.splitlines()


Rehearse = Callable[..., Rehearsed]

STANDS_OUTSIDE = f"""
import sys
sys.path.insert(0, {str(INJECTED)!r})
from ranksafe_rehearsal import importing, outside, settings
importing.install()
outside.install(settings.current())
"""
"""How a program begins that stands outside as a rehearsal's processes do, and has no devices."""


def settings_without_devices(directory: Path, **others: Any) -> Path:
    """The settings of such a program, written into its run folder."""
    facts = {
        "run_directory": str(directory),
        "devices": 2,
        "device_name": "any",
        "capability": [8, 0],
        "multi_processor_count": 1,
        "memory_bytes": 1,
        "native": {"devices": ""},
        **others,
    }
    path = directory / "rehearsal.json"
    path.write_text(json.dumps(facts))
    return path


def needs_isolation() -> None:
    """Skip where this machine has no namespaces for us; CI has to have them."""
    why_not = probe()
    if why_not is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(why_not.en)
        pytest.skip(why_not.en)


def own_addresses() -> list[str]:
    """Addresses of this machine's other interfaces: the one a packet to the outside would leave by, if any."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return []
        return [str(asking.getsockname()[0])]


def compiled_for(interpreter: Path) -> RehearsalEnvironment:
    """Compile for ``interpreter``, or find it in the user's cache; a skip where the machine cannot."""
    try:
        native = native_files(interpreter, lambda step: print(step.en, file=sys.stderr, flush=True))
    except RehearsalNotPossible as error:
        if os.environ.get("CI") == "true":
            pytest.fail(error.message.en)
        pytest.skip(error.message.en)
    return RehearsalEnvironment(interpreter, native)


@pytest.fixture(scope="session")
def torch_python() -> Path:
    """The interpreter that has torch, accelerate and transformers."""
    python = Path(os.environ.get("RANKSAFE_TEST_TORCH_PYTHON", "missing"))
    if not python.is_file():
        if os.environ.get("CI") == "true":
            pytest.fail(_NO_TORCH)
        pytest.skip(_NO_TORCH)
    return python


@pytest.fixture(scope="session")
def rehearsal_environment(torch_python: Path) -> RehearsalEnvironment:
    """The environment with torch, with its simulated devices compiled."""
    return compiled_for(torch_python)


@pytest.fixture
def rehearse(rehearsal_environment: RehearsalEnvironment, tmp_path: Path) -> Rehearse:
    """Run a script, given as text or path, as if the machine had GPUs; see `run_rehearsal`."""

    def run(script: str | Path, *arguments: str, **options: Any) -> Rehearsed:
        return run_rehearsal(rehearsal_environment, tmp_path, script, *arguments, **options)

    return run


def run_rehearsal(
    where: RehearsalEnvironment,
    folder: Path,
    script: str | Path,
    *arguments: str,
    devices: int = 2,
    launcher: str = "python",
    environment: Mapping[str, str] | None = None,
    timeout: float = LONGEST_SECONDS,
    **settings: Any,
) -> Rehearsed:
    """Run ``script`` on ``devices`` simulated A100s and wait for its end.

    ``launcher``: ``python``, or ``torchrun`` or ``accelerate`` with one rank per device. ``settings`` are fields of
    ProcessSettings that differ, say ``memory_bytes=2**30``. Every call has a folder of its own below ``folder``.
    """
    directory = folder / f"rehearsal-{len(list(folder.glob('rehearsal-*')))}"
    directory.mkdir(parents=True)
    if isinstance(script, str):
        path = directory / "script.py"
        path.write_text(script, encoding="utf-8")
    else:
        path = script
    file = replace(_settings(where, directory, path, devices), **settings).write(directory)
    process = subprocess.Popen(
        [
            str(where.interpreter),
            *_launch(launcher, devices, where.interpreter),
            str(path),
            *arguments,
        ],
        cwd=directory,
        env={**_environment(file), **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=timeout)
    finally:
        _end_group(process.pid)
        process.wait()
    return Rehearsed(process.returncode, stdout, stderr, _journal(directory), directory)


def _settings(
    where: RehearsalEnvironment, directory: Path, script: Path, devices: int
) -> ProcessSettings:
    return ProcessSettings(
        run_directory=str(directory),
        script=str(script),
        agent_directory=str(AGENT),
        devices=devices,
        nodes=1,
        device_name="NVIDIA A100-SXM4-80GB",
        capability=(8, 0),
        multi_processor_count=108,
        memory_bytes=80 * 2**30,
        driver_memory_bytes=0,
        context_memory_bytes=0,
        host_memory_bytes=None,
        shrink="off",
        short_epochs=False,
        forecast=False,
        unbounded=False,
        stands_for=1,
        every_block=False,
        offline=False,
        reads_network=False,
        native=where.native,
    )


def _launch(launcher: str, devices: int, interpreter: Path) -> list[str]:
    """What comes between the interpreter and the script.

    Both launchers would start ``python -u``, which writes a line in pieces, as PYTHONUNBUFFERED does: those of two ranks
    then run into each other in the pipe that they share.
    """
    return {
        "python": [],
        "torchrun": [
            *("-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={devices}"),
            *("--no-python", str(interpreter)),
        ],
        "accelerate": [
            *("-m", "accelerate.commands.launch", "--multi_gpu", "--mixed_precision=no"),
            *("--num_machines=1", "--dynamo_backend=no", f"--num_processes={devices}"),
            *("--no_python", str(interpreter)),
        ],
    }[launcher]


def _environment(settings: Path) -> dict[str, str]:
    dropped = (*_OF_OTHER_LAUNCHES, _WRITES_PIECES)
    inherited = {key: value for key, value in os.environ.items() if key not in dropped}
    return {
        **inherited,
        SETTINGS_VARIABLE: str(settings),
        "PYTHONPATH": os.pathsep.join([str(AGENT), str(INJECTED)]),
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def _journal(directory: Path) -> list[dict[str, Any]]:
    files = sorted(directory.glob("rehearsal-*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]


def _end_group(group: int) -> None:
    """Nothing that a script started outlives its test."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
