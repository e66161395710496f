"""Files that others may have put there, or merely named: only ordinary ones are opened, and only so much of them."""

from __future__ import annotations

import errno
import json
import math
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

_LARGEST_SOURCE: Final = 8 * 2**20
_SOURCES: Final = (".py", ".pyi", ".pyw", ".pyx")


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


def read_json(path: Path, most_bytes: int) -> Any:
    """The value in a JSON file. Raises OSError, and ValueError for what is none, too large or nested too deeply."""
    with open_plain(path) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError("the file is too large")
    return parse_json(data)


def parse_json(text: str | bytes) -> Any:
    """A JSON value. Raises ValueError, also for what is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("the value is nested too deeply") from error


def finite(value: Any) -> float | None:
    """A number of a record as a finite one; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def source_lines(filename: str) -> Sequence[str]:
    """The lines of a Python file that a traceback names; empty where it is none or cannot be read.

    A log may come from anybody, and what it names is shown beside it: a key file would be, too.
    """
    try:
        with open_plain(Path(filename), through_links=True) as file:
            data = file.read(_LARGEST_SOURCE)
    except OSError:
        return ()
    if not filename.lower().endswith(_SOURCES):
        first = data[:200].partition(b"\n")[0]
        if not (first.startswith(b"#!") and b"python" in first):
            return ()
    return data.decode("utf-8", "replace").splitlines()
