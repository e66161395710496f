"""Our files in the script's process: none of its numbers, and none of its signals.

The script's first file is number 3, as without us.
"""

from __future__ import annotations

import mmap
import os

_LOWEST = (960, 200, 40)
"""As high as the limit of open files lets them be; 1024 is usual, 256 on macOS."""


def moved_up(descriptor: int) -> int:
    """The same open file under a high number, not passed on to programs; ``descriptor`` itself is closed."""
    try:
        import fcntl
    except ImportError:  # Windows
        return descriptor
    for lowest in _LOWEST:
        try:
            moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
        except OSError:
            continue
        os.close(descriptor)
        return moved
    return descriptor


def mapped_file(path: str, size: int) -> mmap.mmap:
    """A file of zeros in memory. Raises OSError, on a full disk too: a file with holes would be a SIGBUS later."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
        else:
            os.write(descriptor, bytes(size))
        return mmap.mmap(descriptor, size)
    finally:
        os.close(descriptor)
