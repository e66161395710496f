"""Where a run keeps its files: one private folder per run under the user's cache."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import tempfile
import time
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.process_status import status_fields
from ranksafe.source.plain_files import open_plain

KEPT_RUNS = 30
"""Older runs are deleted when a new one starts."""


def cache_directory() -> Path:
    """``ranksafe`` under XDG_CACHE_HOME, ``~/.cache`` where that is not set or not absolute."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(configured) if Path(configured).is_absolute() else Path.home() / ".cache"
    return base / "ranksafe"


def new_run_directory(needed_bytes: int = 20 * 2**20) -> tuple[Path, Translated | None]:
    """An empty folder that only the user can read, whose name is the run's id, and what is to be said of it.

    Where it cannot be made in the user's cache (no permission, or less than ``needed_bytes`` left), it is made among
    the system's temporary files: a run must not fail for want of our files. Raises RunNotPossible when there is no
    place there either: a run whose evidence cannot be written explains nothing.
    """
    runs = cache_directory() / "runs"
    try:
        cache_directory().mkdir(mode=0o700, parents=True, exist_ok=True)
        runs.mkdir(mode=0o700, exist_ok=True)
        prune(runs)
        return _new_folder(runs, needed_bytes), None
    except OSError as error:
        reason = error.strerror
    temporary = Path(tempfile.gettempdir()) / f"ranksafe-runs-{_user()}"
    try:
        temporary.mkdir(mode=0o700, exist_ok=True)
        found = temporary.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o077 or found.st_uid != _user():
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        prune(temporary)
        directory = _new_folder(temporary, needed_bytes)
    except OSError as error:
        raise RunNotPossible(_CANNOT_WRITE.filled(path=runs, reason=reason)) from error
    return directory, _ELSEWHERE.filled(path=runs, reason=reason, folder=directory)


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _new_folder(runs: Path, needed_bytes: int) -> Path:
    if shutil.disk_usage(runs).free < needed_bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    directory = runs / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    directory.mkdir(mode=0o700)
    occupy(directory)
    return directory


def prune(runs: Path) -> None:
    """Delete all but the newest `KEPT_RUNS` runs; those still going on stay."""
    folders = sorted(entry for entry in runs.iterdir() if entry.is_dir())
    for folder in folders[:-KEPT_RUNS]:
        if not _in_use(folder):
            shutil.rmtree(folder, ignore_errors=True)


def release(directory: Path) -> None:
    """The run is over; its folder may be pruned."""
    with contextlib.suppress(OSError):  # it may be gone, or something else may be in its place
        (directory / "in-use").unlink()


def occupy(directory: Path) -> None:
    """This process follows the run. Raises OSError."""
    owner = f"{os.getpid()} {_started(os.getpid())}"
    (directory / "in-use").write_text(owner, encoding="utf-8")


def is_going_on(directory: Path) -> bool:
    """Whether the run has not ended yet."""
    return _in_use(directory)


def _in_use(directory: Path) -> bool:
    try:
        with open_plain(directory / "in-use") as file:
            owner, _, started = file.read(100).decode("ascii", "replace").partition(" ")
        process = int(owner)
        if process <= 0:
            return False
        os.kill(process, 0)
    except PermissionError:
        pass
    except (OSError, OverflowError, ValueError):
        return False
    # After a restart of the machine, or long afterwards, another process may have the number.
    return not started or started == _started(process)


def _started(process: int) -> str:
    """When a process began, as its system counts it; empty where that is not told."""
    fields = status_fields(process)
    try:
        ticks = (fields or [])[19]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, IndexError):
        return ""
    return f"{ticks}@{boot}"


_ELSEWHERE = Translated(
    en="the run's files cannot be written to {path} ({reason}): they are in {folder}, and `runs` does not list them",
    zh_cn="无法将运行文件写入 {path}（{reason}）：它们位于 {folder}，`runs` 不会列出",
)
_CANNOT_WRITE = Translated(
    en="The run's files cannot be written to {path}: {reason}. Free some space there, or set XDG_CACHE_HOME.",
    zh_cn="无法将运行文件写入 {path}：{reason}。请释放该处的磁盘空间，或设置 XDG_CACHE_HOME。",
)
