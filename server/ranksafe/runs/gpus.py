"""Which CUDA devices a run may take: only those nobody uses, and never more than asked for."""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.runs.directory import cache_directory

_BUSY_MEMORY_MIB = 500
_BUSY_PERCENT = 10
_DEVICE_FIELDS = (
    "index,uuid,name,memory.used,memory.free,utilization.gpu,compute_mode,mig.mode.current"
)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One device as nvidia-smi describes it; None where it answers ``[N/A]``."""

    index: int
    uuid: str
    name: str
    used_mib: int | None
    free_mib: int | None
    busy_percent: int | None
    compute_mode: str
    mig: bool
    processes: tuple[tuple[int, int | None], ...] = ()
    """Process id and memory (MiB) of each compute process; those of other containers are invisible."""


@dataclass(slots=True)
class GpuChoice:
    """The devices taken, the reasons against the others, and the locks that keep our other runs away."""

    chosen: list[Gpu] = field(default_factory=list)
    left_out: list[tuple[Gpu, Translated]] = field(default_factory=list)
    locks: list[int] = field(default_factory=list)

    def release(self) -> None:
        """Let other runs have the devices."""
        while self.locks:
            os.close(self.locks.pop())


def list_gpus() -> list[Gpu]:
    """All devices nvidia-smi shows; empty where it is missing or fails."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    devices = _query(program, f"--query-gpu={_DEVICE_FIELDS}")
    processes = _query(program, "--query-compute-apps=gpu_uuid,pid,used_memory")
    return parse_gpus(devices, processes)


def parse_gpus(devices: str, processes: str) -> list[Gpu]:
    """Devices from nvidia-smi's two CSV answers (``noheader,nounits``)."""
    owners: dict[str, list[tuple[int, int | None]]] = {}
    for line in processes.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) >= 3 and cells[1].isdigit():
            owners.setdefault(cells[0], []).append((int(cells[1]), _number(cells[2])))
    gpus = []
    for line in devices.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) < 8 or not cells[0].isdigit():
            continue
        index, uuid, name, used, free, busy, mode, mig = cells[:8]
        gpus.append(
            Gpu(
                index=int(index),
                uuid=uuid,
                name=name,
                used_mib=_number(used),
                free_mib=_number(free),
                busy_percent=_number(busy),
                compute_mode=mode,
                mig=mig == "Enabled",
                processes=tuple(owners.get(uuid, ())),
            )
        )
    return gpus


def choose_gpus(
    gpus: Sequence[Gpu], wanted: int | None, environment: Mapping[str, str]
) -> GpuChoice:
    """Up to ``wanted`` free devices (None: all free ones), most free memory first, each locked for this run."""
    choice = GpuChoice()
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    for gpu in sorted(gpus, key=lambda gpu: -(gpu.free_mib or 0)):
        reason = reason_against(gpu, visible, _owner)
        if reason is None and wanted is not None and len(choice.chosen) >= wanted:
            continue
        if reason is None:
            lock = _lock(gpu)
            if lock is None:
                reason = _OUR_OTHER_RUN
            else:
                choice.locks.append(lock)
                choice.chosen.append(gpu)
        if reason is not None:
            choice.left_out.append((gpu, reason))
    choice.chosen.sort(key=lambda gpu: gpu.index)
    return choice


def reason_against(
    gpu: Gpu, visible: str | None, owner: Callable[[int, int | None], str]
) -> Translated | None:
    """Why a run leaves a device alone; None where it may take it.

    ``visible``: CUDA_VISIBLE_DEVICES where it is set; ``owner``: words for a process and its memory (MiB).
    """
    if visible is not None:
        names = {name.strip() for name in visible.split(",")}
        if str(gpu.index) not in names and not any(
            gpu.uuid.startswith(n) for n in names if n[:4] == "GPU-"
        ):
            return _HIDDEN
    if gpu.mig:
        return _MIG
    if gpu.compute_mode == "Prohibited":
        return _PROHIBITED
    if gpu.processes:
        return _IN_USE.filled(owners=", ".join(owner(pid, mib) for pid, mib in gpu.processes))
    if gpu.free_mib is None:
        return _UNKNOWN_MEMORY
    if (gpu.used_mib or 0) > _BUSY_MEMORY_MIB or (gpu.busy_percent or 0) > _BUSY_PERCENT:
        return _BUSY.filled(used=gpu.used_mib or 0, percent=gpu.busy_percent or 0)
    return None


def _owner(pid: int, mib: int | None) -> str:
    try:
        user = pwd.getpwuid(Path(f"/proc/{pid}").stat().st_uid).pw_name
    except (OSError, KeyError):
        user = "?"
    return f"{user} (pid {pid}, {'?' if mib is None else mib} MiB)"


def _lock(gpu: Gpu) -> int | None:
    """A lock that lives as long as the descriptor stays open, so it cannot outlive the server."""
    folder = cache_directory() / "gpus"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder / f"{gpu.uuid}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _query(program: str, what: str) -> str:
    command = [program, what, "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None


_HIDDEN = Translated(en="hidden by CUDA_VISIBLE_DEVICES", zh_cn="被 CUDA_VISIBLE_DEVICES 隐藏")
_MIG = Translated(en="in MIG mode", zh_cn="处于 MIG 模式")
_PROHIBITED = Translated(en="compute mode Prohibited", zh_cn="计算模式为 Prohibited")
_IN_USE = Translated(en="in use by {owners}", zh_cn="正被 {owners} 使用")
_UNKNOWN_MEMORY = Translated(en="free memory unknown", zh_cn="可用显存未知")
_BUSY = Translated(
    en="{used} MiB used, {percent} % busy by a process that is not visible here",
    zh_cn="已用 {used} MiB，利用率 {percent} %，占用进程在此处不可见",
)
_OUR_OTHER_RUN = Translated(
    en="taken by another run of ranksafe", zh_cn="已被 ranksafe 的另一次运行占用"
)
