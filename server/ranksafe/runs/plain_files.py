"""Files that others may have put there, or merely named: only ordinary ones are opened, and only so much of them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ranksafe.source.plain_files import open_plain

_LARGEST_SOURCE: Final = 8 * 2**20
_SOURCES: Final = (".py", ".pyi", ".pyw", ".pyx")


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
