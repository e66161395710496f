"""Put new content in the place of a file's old one: at once, and only where it is still the old one."""

from __future__ import annotations

import errno
import io
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path


class ChangedMeanwhile(OSError):
    """The file no longer has the content that the new one was made of."""


def replace_content(path: Path, before: bytes, after: bytes) -> None:
    """Give a file that has the content ``before`` the content ``after``.

    Whoever reads it, or looks after this process was killed, finds the one or the other: the new content is written
    beside the file, which is then renamed. Mode, owner and attributes stay, and a link leads where it led. A file with
    several names, whose owner or folder would not have it, is written in place, which a kill can interrupt.

    Raises ChangedMeanwhile, and OSError: then the file is as it was.
    """
    target = path.resolve(strict=True)
    beside = None
    if target.stat().st_nlink == 1:
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        with suppress(PermissionError):
            beside = _written_beside(target, after)
    if beside is None:
        _write_in_place(target, before, after)
        return
    try:
        if target.read_bytes() != before:
            raise ChangedMeanwhile
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _written_beside(target: Path, content: bytes) -> Path:
    """A new file like the target, with other content. Raises PermissionError where it cannot be like it."""
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            owner = target.stat()
            if hasattr(os, "fchown"):
                own = os.fstat(file.fileno())
                if (own.st_uid, own.st_gid) != (owner.st_uid, owner.st_gid):
                    os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            os.fsync(file.fileno())
        shutil.copystat(target, name)
        os.utime(name)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)


def _write_in_place(target: Path, before: bytes, after: bytes) -> None:
    """The file is not cut off before the new content has been written over it: a full disk leaves it as it was."""
    with target.open("r+b", buffering=0) as file:
        if file.read() != before:
            raise ChangedMeanwhile
        try:
            _write_all(file, after)
        except OSError:
            _write_all(file, before)
            raise


def _write_all(file: io.FileIO, data: bytes) -> None:
    file.seek(0)
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
    file.truncate()
