"""Take the devices of a run on its host: looked at right before the start, and locked against our other runs."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess

_BUSY_MEMORY_MIB = 500
_TIMEOUT_SECONDS = 30


class Taken(Exception):
    """Too few of the devices are still free; `free` says how many are."""

    def __init__(self, free: int) -> None:
        super().__init__(f"{free} devices are free")
        self.free = free


def reserve(candidates: list[str], count: int, folder: str) -> tuple[list[str], list[int]]:
    """The first ``count`` of the ``candidates`` (UUIDs) that nobody uses, and the locks, held as long as this process.

    Raises Taken, and holds nothing, when there are too few. ``folder``: where all runs of this user keep their locks.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    busy = _busy()
    chosen: list[str] = []
    locks: list[int] = []
    for uuid in candidates:
        if len(chosen) == count:
            break
        if uuid in busy or not re.match(r"[A-Za-z0-9-]+\Z", uuid):
            continue
        lock = os.open(os.path.join(folder, uuid + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            continue
        chosen.append(uuid)
        locks.append(lock)
    if len(chosen) < count:
        for lock in locks:
            os.close(lock)
        raise Taken(len(chosen))
    return chosen, locks


def _busy() -> set[str]:
    """Devices with a compute process, or with memory held by one that is not visible here."""
    busy = {cells[0] for cells in _ask("--query-compute-apps=gpu_uuid,pid") if cells[0]}
    for cells in _ask("--query-gpu=uuid,memory.used"):
        if len(cells) > 1 and cells[1].isdigit() and int(cells[1]) > _BUSY_MEMORY_MIB:
            busy.add(cells[0])
    return busy


def _ask(what: str) -> list[list[str]]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    try:
        answer = subprocess.run(
            [program, what, "--format=csv,noheader,nounits"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    lines = answer.stdout.decode("utf-8", "replace").splitlines()
    return [[cell.strip() for cell in line.split(",")] for line in lines]
