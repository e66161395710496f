"""Where compiled files are kept: under the user's cache, one folder per torch build and state of our sources.

A folder appears whole or not at all: it is filled under another name and renamed. Object files are kept by what went
into them, so that a cancelled or broken build goes on where it stopped, and an edited source recompiles alone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.rehearsal.errors import RehearsalNotPossible

KEPT_DAYS = 30
"""Builds and objects that were not used for so long are deleted when the next build is published."""
_POLL_SECONDS = 0.2


class BuildStopped(Exception):
    """The caller asked the build to stop; what was compiled so far is kept."""


class BuildCache:
    """The builds and objects below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.builds = folder / "builds"
        self.objects = folder / "objects"
        self.logs = folder / "logs"

    @classmethod
    def of_user(cls) -> BuildCache:
        """``ranksafe/native`` under XDG_CACHE_HOME, ``~/.cache`` where that is not set or not absolute."""
        configured = os.environ.get("XDG_CACHE_HOME", "")
        base = Path(configured) if Path(configured).is_absolute() else Path.home() / ".cache"
        return cls(base / "ranksafe" / "native")

    def prepare(self) -> None:
        """Make the folders. Raises RehearsalNotPossible where that is not allowed."""
        try:
            for folder in (self.builds, self.objects, self.logs):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise not_writable(self.folder, error) from error

    def build(self, key: str) -> Path | None:
        """The finished build of that key, now in use again."""
        folder = self.builds / key
        if not folder.is_dir():
            return None
        _touch(folder)
        return folder

    def object_file(self, key: str) -> Path:
        """Where the object with that key is, or belongs."""
        return self.objects / f"{key}.o"

    @contextlib.contextmanager
    def new_build(self, key: str) -> Iterator[Path]:
        """An empty folder that becomes the build of that key when the block ends without an exception."""
        unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=self.builds))
        try:
            yield unfinished
            unfinished.chmod(0o755)
            with contextlib.suppress(OSError):  # one that a crash left half deleted
                shutil.rmtree(self.builds / key)
            unfinished.rename(self.builds / key)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        self._prune()

    @contextlib.contextmanager
    def locked(
        self, key: str, should_stop: Callable[[], bool], on_wait: Callable[[], None]
    ) -> Iterator[None]:
        """Keep other processes from making the same build; ``on_wait`` is called once if one is at it already.

        The system frees the lock when its holder dies. Raises BuildStopped.
        """
        import fcntl  # not on Windows, where nothing is built yet

        descriptor = os.open(self.builds / f".{key}.lock", os.O_CREAT | os.O_RDWR, 0o644)
        try:
            told = False
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if not told:
                        on_wait()
                        told = True
                    if should_stop():
                        raise BuildStopped from None
                    time.sleep(_POLL_SECONDS)
            yield
        finally:
            os.close(descriptor)

    def _prune(self) -> None:
        oldest = time.time() - KEPT_DAYS * 86_400
        for folder in (self.builds, self.objects, self.logs):
            for entry in folder.iterdir():
                with contextlib.suppress(OSError):
                    if entry.stat().st_mtime > oldest:
                        continue
                    if entry.is_dir():
                        shutil.rmtree(entry)
                    else:
                        entry.unlink()


def use_object(path: Path) -> bool:
    """Whether the object file is there; it then counts as used now."""
    if not path.is_file():
        return False
    _touch(path)
    return True


def not_writable(path: Path, error: OSError) -> RehearsalNotPossible:
    """What to raise when the cache cannot be written."""
    return RehearsalNotPossible(_NOT_WRITABLE.filled(path=path, reason=error.strerror or error))


def _touch(path: Path) -> None:
    with contextlib.suppress(OSError):  # a cache that is shared and read-only still serves
        os.utime(path)


_NOT_WRITABLE = Translated(
    en="The compiled parts of a rehearsal cannot be written to {path}: {reason}. Free some "
    "space there, or set XDG_CACHE_HOME.",
    zh_cn="无法将预演的编译产物写入 {path}：{reason}。请释放该处的磁盘空间，或设置 "
    "XDG_CACHE_HOME。",
)
