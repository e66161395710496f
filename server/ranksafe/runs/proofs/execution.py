"""Run one proof program in the way its header asks for, and collect what it leaves."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ranksafe.rehearsal.settings import RehearsalOptions, Shrink
from ranksafe.runs.proofs.evidence import Execution, read_exceptions
from ranksafe.runs.proofs.header import Launch, ProofHeader, RunsOn
from ranksafe.runs.simulated_devices import (
    SimulatedDevices,
    give_devices,
    put_first,
    settings_for,
)

_INJECTED = Path(__file__).parent / "injected"
_POLL_SECONDS = 0.1
_TERMINATION_SECONDS = 3.0


def cuda_device_count() -> int:
    """CUDA devices of this machine, as nvidia-smi lists them; 0 without it."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return 0
    try:
        listing = subprocess.run(
            [tool, "--query-gpu=index", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return len(listing.stdout.split()) if listing.returncode == 0 else 0


def execute(
    program: Path,
    header: ProofHeader,
    interpreter: Path,
    overlay: Path | None,
    *,
    devices: SimulatedDevices | None = None,
    timeout_seconds: float,
    should_stop: Callable[[], bool],
) -> Execution:
    """Run ``program`` to its end in a scratch folder; with ``devices``, on that kind of simulated GPUs.

    Raises OSError when it cannot be started.
    """
    started = time.monotonic()
    # Not resolved: a virtual environment's python is a link, and its target knows nothing of the environment.
    command = _command(program.absolute(), header, interpreter.absolute())
    with tempfile.TemporaryDirectory(prefix="ranksafe-proof-") as name:
        scratch = Path(name)
        with (scratch / "output").open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=_made(scratch / "work"),
                env=_environment(program, header, scratch, overlay, devices),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            deadline = started + timeout_seconds
            try:
                ended = _wait(process, deadline, should_stop)
            finally:
                _end_session(process)
        evidence = scratch / "evidence"
        written = [scratch / "output", *sorted(evidence.glob("output-of-rank-*"))]
        return Execution(
            command=tuple(command),
            exit_status=process.returncode if ended else None,
            timed_out=not ended and time.monotonic() >= deadline,
            output="\n".join(
                each.read_text(encoding="utf-8", errors="replace") for each in written
            ),
            exceptions=read_exceptions(evidence, program.absolute().parent),
            seconds=time.monotonic() - started,
        )


def _launched(header: ProofHeader) -> bool:
    return header.runs_on is RunsOn.CPU_RANKS or (
        header.runs_on is RunsOn.CUDA and header.launch is Launch.ACCELERATE
    )


def _command(program: Path, header: ProofHeader, interpreter: Path) -> list[str]:
    if not _launched(header):
        return [str(interpreter), str(program)]
    # --cpu would start one process only (accelerate 1.15.0), so the CPU is chosen by ACCELERATE_USE_CPU.
    return [
        *(str(interpreter), "-m", "accelerate.commands.launch", "--multi_gpu"),
        *("--num_machines", "1", "--num_processes", str(header.ranks)),
        *("--mixed_precision", "no", "--dynamo_backend", "no"),
        *("--main_process_port", str(_free_port())),
        str(program),
    ]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _environment(
    program: Path,
    header: ProofHeader,
    scratch: Path,
    overlay: Path | None,
    devices: SimulatedDevices | None,
) -> dict[str, str]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    }
    if overlay is not None:
        put_first(environment, "PYTHONPATH", overlay)
    environment |= {
        "PYTHONDONTWRITEBYTECODE": "1",
        "RANKSAFE_PROOF_EVIDENCE": str(_made(scratch / "evidence")),
        # A user's accelerate configuration and model cache must not decide what a proof shows.
        "HF_HOME": str(_made(scratch / "hugging-face")),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_NUM_THREADS": "1",
    }
    if _launched(header):
        environment["RANKSAFE_PROOF_LAUNCHED"] = "1"
    if devices is not None:
        _simulate(devices, environment, program, header, scratch)
    else:
        substitute(environment, header)
    put_first(environment, "PYTHONPATH", _INJECTED)
    return environment


def _simulate(
    devices: SimulatedDevices,
    environment: dict[str, str],
    program: Path,
    header: ProofHeader,
    scratch: Path,
) -> None:
    settings = settings_for(
        devices,
        RehearsalOptions(shrink=Shrink.OFF),
        per_node=header.ranks,
        script=program,
        directory=_made(scratch / "rehearsal"),
        offline=True,
    )
    file = settings.write(scratch / "rehearsal")
    give_devices(environment, file, header.ranks if _launched(header) else 1)


def substitute(environment: dict[str, str], header: ProofHeader) -> None:
    """What stands for GPUs in the way the header names."""
    if header.runs_on is not RunsOn.CUDA:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    if header.runs_on is RunsOn.CPU_RANKS:
        environment["ACCELERATE_USE_CPU"] = "true"
        if sys.platform == "linux":
            environment["GLOO_SOCKET_IFNAME"] = "lo"
    elif header.runs_on is RunsOn.EMULATED_DP:
        environment["RANKSAFE_PROOF_REPLICAS"] = str(header.ranks)
    elif header.runs_on is RunsOn.JAX_HOST:
        environment["JAX_PLATFORMS"] = "cpu"
        environment["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={header.ranks}"


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _wait(
    process: subprocess.Popen[bytes], deadline: float, should_stop: Callable[[], bool]
) -> bool:
    """Whether the process ended by itself."""
    while process.poll() is None:
        if time.monotonic() >= deadline or should_stop():
            return False
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_SECONDS)
    return True


def _end_session(process: subprocess.Popen[bytes]) -> None:
    """End what is left of the process and its children: all of them are in its session's process group."""
    if not hasattr(os, "killpg"):
        process.kill()
        process.wait()
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_TERMINATION_SECONDS)
