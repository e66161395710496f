"""What a script sees of the machine beside its files: harmless devices, its own processes, names of hosts.

Everything may raise OSError.
"""

# Files as the kernel sees them, call by call: pathlib would only hide which calls are made.
# ruff: noqa: PTH101, PTH102, PTH110, PTH113, PTH118, PTH211

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from ranksafe.rehearsal.isolation import kernel


def mount_devices(folder: str, shared_memory_bytes: int) -> None:
    """The devices that hold nothing, terminals of our own, and shared memory of bounded size."""
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        target = os.path.join(folder, name)
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        kernel.bind("/dev/" + name, target)
    links = {
        "fd": "/proc/self/fd",
        "stdin": "/proc/self/fd/0",
        "stdout": "/proc/self/fd/1",
        "stderr": "/proc/self/fd/2",
    }
    for name, leads_to in {**links, "ptmx": "pts/ptmx"}.items():
        os.symlink(leads_to, os.path.join(folder, name))
    os.mkdir(os.path.join(folder, "pts"))
    with contextlib.suppress(OSError):
        kernel.mount(
            "devpts", os.path.join(folder, "pts"), "devpts", 0, "newinstance,ptmxmode=0666,mode=620"
        )
    os.mkdir(os.path.join(folder, "shm"))
    size = f"mode=1777,size={shared_memory_bytes}"
    flags = kernel.NO_SET_UID | kernel.NO_DEVICES
    kernel.mount("tmpfs", os.path.join(folder, "shm"), "tmpfs", flags, size)


def mount_processes(folder: str) -> None:
    """The namespace's own processes; what would change the machine can be read only (root's number is real)."""
    kernel.mount(
        "proc", folder, "proc", kernel.NO_SET_UID | kernel.NO_DEVICES | kernel.NO_EXECUTION
    )
    for name in ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr", "driver"):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            kernel.bind(path, path)
            kernel.make_read_only(path)


def mount_system(folder: str) -> None:
    """Facts of the machine, to be read; the network's are those of the namespace."""
    flags = kernel.READ_ONLY | kernel.NO_SET_UID | kernel.NO_DEVICES | kernel.NO_EXECUTION
    with contextlib.suppress(OSError):
        kernel.mount("sysfs", folder, "sysfs", flags)


def name_hosts(top: str, path: str, names: Sequence[str]) -> None:
    """Let ``names`` lead to the only interface there is, in the root ``top``; the file is made at ``path``."""
    shown = top + os.path.realpath("/etc/hosts")
    if not os.path.isfile(shown):
        return
    lines = hosts_with(names, Path("/etc/hosts").read_text("utf-8", "replace"))
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.chmod(path, 0o644)
    kernel.bind(path, shown)
    kernel.make_read_only(shown)


def hosts_with(names: Sequence[str], hosts: str) -> list[str]:
    """The lines of ``hosts``, but all ``names`` lead to the loopback address, which also has a name as seen by IPv6."""
    lines: list[str] = []
    known: set[str] = set()
    for line in hosts.splitlines():
        address, *others = line.split("#")[0].split() or [""]
        kept = [name for name in others if name not in names]
        known.update(kept)
        if kept:
            lines.append(" ".join([address, *kept]))
    if "localhost" not in known:
        lines.insert(0, "127.0.0.1 localhost")
    return [*lines, *(f"127.0.0.1 {name}" for name in names), "::ffff:127.0.0.1 loopback"]
