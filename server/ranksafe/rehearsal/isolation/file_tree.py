"""A second root folder that looks like the first, where everything can be written and nothing is kept.

One overlay over ``/`` is not possible without root (see `mounts.Mounts.any_below`). So each folder that holds no mount
point becomes an overlay of its own: the real one below, scratch above. The folders that do hold one (``/`` itself) are
made anew in memory, with the same entries. An overlay also copies a file's folders when it first writes the file, and
may not do so for those that belong to users unknown in the namespace; so folders of others are made anew down to the
first one that is the user's own, on the way to every folder where the script is likely to write.

Sockets and pipes cannot be reached through an overlay, and so neither can the container daemon, the ssh agent or the
desktop. Device files are the harmless ones only.
"""

# Files as the kernel sees them, call by call: pathlib would only hide which calls are made.
# ruff: noqa: PTH101, PTH102, PTH115, PTH116, PTH118, PTH120, PTH211

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from ranksafe.rehearsal.isolation import kernel
from ranksafe.rehearsal.isolation.machine import (
    mount_devices,
    mount_processes,
    mount_system,
    name_hosts,
)
from ranksafe.rehearsal.isolation.mounts import Mounts, read_mounts
from ranksafe.rehearsal.isolation.specification import ROOT_FOLDER, SCRATCH_FOLDER, Specification

_MADE_BY_US = frozenset({"/proc", "/sys", "/dev"})
_SYSTEM = frozenset(
    {"/usr", "/etc", "/boot", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix", "/snap"}
)
"""Where no script has folders of its own."""
_SOCKETS_LIVE_HERE = frozenset({"/run", "/var/run"})
_COPIED_BYTES = 1 << 20
_SCANNED_ENTRIES = 256
_SHALLOW_BYTES = 64 << 20
"""Size of the folders made anew where the overlays' scratch is on disk."""


class FileTree:
    """Builds the new root in this process's mount namespace. Everything may raise OSError."""

    def __init__(self, specification: Specification) -> None:
        self.specification = specification
        self.root = os.path.join(specification.run_directory, ROOT_FOLDER)
        self.read_only: list[str] = []
        """Folders of file systems that can carry no overlay: they can be read only."""
        self._knows_everyone = _knows_everyone()
        self._mounts: Mounts
        self._layers = 0
        self._scratch = ""
        self._on_disk = False

    @property
    def scratch_is_on_disk(self) -> bool:
        """Whether nothing but `bounds` keeps the scratch folder from filling the disk."""
        return self._on_disk

    @property
    def scratch(self) -> str:
        """Where what is written goes; cannot be named any more once the root is changed."""
        return self._scratch

    def build(self) -> None:
        """Mount everything; the root is not changed yet."""
        run = os.open(self.specification.run_directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._mounts = read_mounts()
            self._prepare_scratch()
            top = os.path.join(self.root, "root")
            os.mkdir(top)
            self._imitate("/", top)
            kernel.bind(top, top)
            self._mirror("/", top)
            self._mount_run_directory(run, top)
        finally:
            os.close(run)
        mount_devices(os.path.join(top, "dev"), self.specification.shared_memory_bytes)
        mount_processes(os.path.join(top, "proc"))
        mount_system(os.path.join(top, "sys"))
        name_hosts(top, os.path.join(self.root, "hosts"), self.specification.host_names)

    def _prepare_scratch(self) -> None:
        run, wanted = self.specification.run_directory, self.specification.scratch_on_disk
        on_disk = os.path.join(run, SCRATCH_FOLDER)
        kernel.mount(
            "tmpfs", self.root, "tmpfs", kernel.NO_SET_UID | kernel.NO_DEVICES, self._size()
        )
        needs_disk = not kernel.supports_user_attributes(self.root) or self._has_folders_of_groups()
        self._on_disk = needs_disk if wanted is None else wanted
        if self._on_disk and wanted is None and not _can_be_upper(on_disk):
            self._on_disk = False
        self._scratch = on_disk if self._on_disk else os.path.join(self.root, "scratch")
        os.mkdir(self._scratch, 0o700)

    def _size(self) -> str:
        return f"mode=755,size={max(self.specification.disk_bytes, _SHALLOW_BYTES)}"

    def _has_folders_of_groups(self) -> bool:
        """Memory mounted here knows only the user's first group; the disk knows all."""
        if self._knows_everyone:
            return False
        group = os.getegid()
        folders = self.specification.writable_folders
        return any(os.stat(each).st_gid != group for each in folders if _is_own(each))

    def _mirror(self, real: str, new: str) -> None:
        """Give ``new`` the entries of ``real``."""
        for entry in _entries(real):
            path, target = entry.path, os.path.join(new, entry.name)
            with contextlib.suppress(OSError):
                if entry.is_symlink():
                    os.symlink(os.readlink(path), target)
                elif entry.is_dir(follow_symlinks=False):
                    os.mkdir(target)
                    self._directory(path, target)
                elif entry.is_file(follow_symlinks=False):
                    self._file(path, target)

    def _directory(self, path: str, target: str) -> None:
        if path in _MADE_BY_US:
            return
        if self._must_be_made_anew(path):
            self._imitate(path, target)
            self._mirror(path, target)
            return
        try:
            self._overlay(path, target)
        except OSError:
            self._imitate(path, target)
            if path not in _SOCKETS_LIVE_HERE:
                self.read_only.append(path)
                kernel.bind(path, target, recursive=True)
                kernel.make_read_only(target)

    def _must_be_made_anew(self, path: str) -> bool:
        if self._mounts.any_below(path):
            return True
        if self._knows_everyone or path in _SYSTEM or _is_own(path):
            return False
        if any(_passes_others(path, folder) for folder in self.specification.writable_folders):
            return True
        return any(_has_own_child(child) for child in _folders(path) if not _is_own(child))

    def _overlay(self, path: str, target: str) -> None:
        self._layers += 1
        upper, work = f"upper{self._layers}", f"work{self._layers}"
        os.chdir(self._scratch)
        os.mkdir(upper)
        os.mkdir(work)
        self._imitate(path, upper)
        lower = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # By number, because a comma or a colon would have to be escaped; volatile: nothing has to reach the disk.
            layers = f"lowerdir=/proc/self/fd/{lower},upperdir={upper},workdir={work}"
            options = f"{layers},userxattr,volatile"
            kernel.mount(
                "overlay", target, "overlay", kernel.NO_SET_UID | kernel.NO_DEVICES, options
            )
        finally:
            os.close(lower)

    def _imitate(self, path: str, target: str) -> None:
        """Owner and mode; folders of others stay closed to us where they are closed."""
        real = os.stat(path)
        mode = stat.S_IMODE(real.st_mode)
        if self._knows_everyone:
            with contextlib.suppress(OSError):
                os.chown(target, real.st_uid, real.st_gid)
        elif not os.access(path, os.W_OK):
            mode &= ~0o222
        os.chmod(target, mode)

    def _file(self, path: str, target: str) -> None:
        """A file beside a mount point: copied if small, else for reading only."""
        if os.stat(path).st_size <= _COPIED_BYTES:
            shutil.copyfile(path, target)
            self._imitate(path, target)
            return
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        kernel.bind(path, target)
        kernel.make_read_only(target)

    def _mount_run_directory(self, descriptor: int, top: str) -> None:
        target = top + self.specification.run_directory
        kernel.bind(f"/proc/self/fd/{descriptor}", target)
        if self._on_disk:
            hidden = os.path.join(target, SCRATCH_FOLDER)
            kernel.mount("tmpfs", hidden, "tmpfs", kernel.READ_ONLY, "size=4k")


def _can_be_upper(folder: str) -> bool:
    """Whether the disk there keeps the attributes overlays need (NFS and overlays themselves do not)."""
    return kernel.supports_user_attributes(os.path.dirname(folder))


def _knows_everyone() -> bool:
    """Whether more than our own number is mapped, as for root."""
    ranges = Path("/proc/self/uid_map").read_text().splitlines()
    return sum(int(line.split()[2]) for line in ranges) > 1


def _is_own(path: str) -> bool:
    """Whether we may act as the owner. Asked of the kernel by opening, because users who are unknown in the namespace
    all show the same number, which may be ours.
    """
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOATIME | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _passes_others(path: str, folder: str) -> bool:
    """Whether ``folder``, or a folder between it and ``path``, is below ``path`` and somebody else's."""
    while folder.startswith(path.rstrip("/") + "/"):
        if not _is_own(folder):
            return True
        folder = os.path.dirname(folder)
    return False


def _has_own_child(path: str) -> bool:
    return any(_is_own(child) for child in _folders(path))


def _folders(path: str) -> Iterator[str]:
    for number, entry in enumerate(_entries(path)):
        if number >= _SCANNED_ENTRIES:
            return
        with contextlib.suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                yield entry.path


def _entries(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except OSError:
        return []
