"""Ends a rehearsal that outgrows the machine, and says so: memory, and the disk.

No resource limit of Linux bounds what several processes hold together; a control group would, but may be used without
root only where a service manager has delegated one. So the memory is looked at four times a second, with a margin
(`memory.host_memory_bound`), and the kernel is told to end these processes first should it run out in between.
"""

# Files as the kernel sees them, call by call: pathlib would only hide which calls are made.
# ruff: noqa: PTH118, PTH208

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.rehearsal.isolation.events import EventBook
from ranksafe.rehearsal.isolation.file_tree import FileTree
from ranksafe.rehearsal.isolation.memory import private_memory
from ranksafe.rehearsal.isolation.specification import Specification

PERIOD_SECONDS = 0.25
_FIRST_TO_END = 800
"""``oom_score_adj``, of -1000 to 1000."""
_FULL_SHARE = 0.005
_EVIDENCE_BYTES = 2 << 30
"""What a run may write to its own folder: its output is on the real disk."""
_LEAST_FREE_BYTES = 64 << 20


class Bounds:
    """Looks at the processes of one rehearsal."""

    def __init__(
        self, specification: Specification, book: EventBook, tree: FileTree | None
    ) -> None:
        self._specification = specification
        self._book = book
        self._scratch = None if tree is None else _open_folder(tree.scratch)
        self._on_disk = tree is not None and tree.scratch_is_on_disk
        self._said: set[str] = set()
        self._turn = 0
        self._killed_before = _killed_by_kernel()

    def must_end(self, processes: Sequence[int]) -> bool:
        """Whether the run has outgrown a bound that nothing else enforces; writes down which."""
        self._turn += 1
        self._look_at_memory_files()
        return self._outgrew_memory(processes) or (self._turn % 8 == 0 and self._outgrew_disk())

    def at_end(self) -> None:
        """Look a last time, also at whether the kernel ran out of memory meanwhile."""
        self._look_at_memory_files()
        if _killed_by_kernel() > self._killed_before:
            self._say("host-memory", "oom-killer", _KERNEL_ENDED)

    def _outgrew_memory(self, processes: Sequence[int]) -> bool:
        bound = self._specification.host_memory_bytes
        if bound is None:
            return False
        files = self._bytes_in_memory_files()
        if private_memory(processes, exact=False) + files <= bound:
            return False
        held = private_memory(processes, exact=True) + files
        if held <= bound:
            return False
        self._say(
            "host-memory", f"{held} of {bound}", _MEMORY.filled(held=_gib(held), bound=_gib(bound))
        )
        return True

    def _bytes_in_memory_files(self) -> int:
        used = _used("/dev/shm") if self._specification.namespaces else 0
        if self._scratch is not None and not self._on_disk:
            used += _used(self._scratch)
        return used

    def _look_at_memory_files(self) -> None:
        """A full scratch folder or /dev/shm is felt by the script itself; here it is said whose limit that is."""
        if not self._specification.namespaces:
            return
        if self._scratch is not None and not self._on_disk and _is_full(self._scratch):
            bound = self._specification.disk_bytes
            self._say("disk", str(bound), _DISK.filled(bound=_gib(bound)))
        if _is_full("/dev/shm"):
            bound = self._specification.shared_memory_bytes
            self._say("disk", "/dev/shm", _SHARED_MEMORY.filled(bound=_gib(bound)))

    def _outgrew_disk(self) -> bool:
        bound = self._specification.disk_bytes
        if (
            self._scratch is not None
            and self._on_disk
            and _folder_size(f"/proc/self/fd/{self._scratch}") > bound
        ):
            self._say("disk", str(bound), _DISK.filled(bound=_gib(bound)))
            return True
        run = self._specification.run_directory
        if _size_of_files(run) > _EVIDENCE_BYTES or _free(run) < _LEAST_FREE_BYTES:
            self._say("disk", "output", _OUTPUT.filled(bound=_gib(_EVIDENCE_BYTES)))
            return True
        return False

    def _say(self, kind: str, what: str, message: Translated) -> None:
        if kind + what.split(" ")[0] in self._said:
            return
        self._said.add(kind + what.split(" ")[0])
        self._book.limit(kind, what, message)


def be_ended_first() -> None:
    """Let the kernel end this process and its children before anything else when memory runs out."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(_FIRST_TO_END))


def _open_folder(path: str) -> int:
    """Kept open: the folder cannot be named from inside the new root."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _used(folder: str | int) -> int:
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def _free(folder: str) -> int:
    try:
        found = os.statvfs(folder)
    except OSError:
        return _LEAST_FREE_BYTES
    return found.f_bavail * found.f_frsize


def _is_full(folder: str | int) -> bool:
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    return found.f_blocks > 0 and found.f_bfree <= found.f_blocks * _FULL_SHARE


def _folder_size(folder: str) -> int:
    total = 0
    for directory, _, names in os.walk(folder + "/."):
        for name in names:
            total += _allocated(os.path.join(directory, name))
    return total


def _size_of_files(folder: str) -> int:
    try:
        names = os.listdir(folder)
    except OSError:
        return 0
    return sum(_allocated(os.path.join(folder, name)) for name in names)


def _allocated(path: str) -> int:
    try:
        return os.lstat(path).st_blocks * 512
    except OSError:
        return 0


def _killed_by_kernel() -> int:
    """Processes ended for lack of memory since the machine started (Linux 4.13)."""
    try:
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return 0


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"


_MEMORY = Translated(
    en="the rehearsal held {held} of this machine's memory and may hold {bound}: it was ended. "
    "Simulated devices keep their tensors there; use fewer devices, smaller batches, or --shrink on.",
    zh_cn="预演占用了本机 {held} 内存，上限为 {bound}，因此已被终止。"
    "模拟设备的张量都放在本机内存中；请减少设备数、减小批次，或使用 --shrink on。",
)
_KERNEL_ENDED = Translated(
    en="this machine ran out of memory during the rehearsal and its kernel ended processes",
    zh_cn="预演期间本机内存耗尽，内核终止了部分进程",
)
_DISK = Translated(
    en="the script wrote more than the {bound} that a rehearsal keeps (and throws away): its scratch space is full",
    zh_cn="脚本写入的数据超过了预演所能暂存（之后即丢弃）的 {bound}：临时空间已满",
)
_SHARED_MEMORY = Translated(
    en="/dev/shm, {bound} in a rehearsal, is full", zh_cn="/dev/shm 已满（预演中大小为 {bound}）"
)
_OUTPUT = Translated(
    en="the run's output filled its folder (more than {bound}, or no space left on the disk): it was ended",
    zh_cn="运行的输出占满了其文件夹（超过 {bound}，或磁盘已无空间），因此已被终止",
)
