"""Numbers for descriptors of ours that are none of the script's: its first file is 3, as without us."""

from __future__ import annotations

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
