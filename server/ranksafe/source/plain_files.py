"""Files that others may have put there, or merely named: only ordinary ones are opened, and only so much of them."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_plain(path: Path, *, through_links: bool = False) -> BinaryIO:
    """Open an ordinary file for reading, at once.

    Raises OSError for everything else: a pipe would be waited for, a device has no end, a link leads where its author
    wants (``through_links``: where the user may have made it), a name may have NUL bytes.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if not through_links:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(path, flags)
    except ValueError as error:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL)) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    return os.fdopen(descriptor, "rb")


def read_plain(path: Path, most_bytes: int) -> bytes:
    """The content of an ordinary file, links followed.

    Raises OSError, for one with more than ``most_bytes`` too (EFBIG), whatever size it claims to have: those of the
    kernel have none, and some no end.
    """
    with open_plain(path, through_links=True) as file:
        data = file.read(most_bytes + 1)
    if data is None:
        # It has something to say later, as /proc/kmsg does.
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return data
