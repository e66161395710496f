"""The combined log: all ranks' lines in the order they were seen, each marked with its rank."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from ranksafe.runs.records.redaction import HIDDEN
from ranksafe.runs.targets.protocol import Output

_LARGEST_BLOTTED = 64 * 2**20


class CombinedLog:
    """Written while the run goes on. A full disk ends the log, not the run."""

    def __init__(self, path: Path, hidden: Sequence[str] = ()) -> None:
        """``hidden``: texts that are not written: launchers quote the command line that failed."""
        self._hidden = hidden
        try:
            self._file: TextIO | None = path.open("w", encoding="utf-8")
        except OSError:
            self._file = None

    def write(self, line: Output) -> None:
        """Append a line with its mark."""
        if self._file is None:
            return
        try:
            text = line.text
            for each in self._hidden:
                text = text.replace(each, HIDDEN)
            self._file.write(f"{mark(line.rank)} {text}\n")
            self._file.flush()
        except OSError:
            self._file = None

    def close(self) -> None:
        """No more lines."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()


def blot_out(directory: Path, hidden: Sequence[str]) -> None:
    """Take texts out of what the launcher wrote in a run's folder, byte by byte, so that nothing else moves."""
    if not hidden:
        return
    for name in ("launcher.stdout", "launcher.stderr"):
        with contextlib.suppress(OSError), (directory / name).open("r+b") as file:
            data = file.read(_LARGEST_BLOTTED)
            clean = data
            for each in hidden:
                secret = each.encode("utf-8", "surrogateescape")
                clean = clean.replace(secret, b"*" * len(secret))
            if clean != data:
                file.seek(0)
                file.write(clean)


def mark(rank: int | None) -> str:
    """How a line's origin is shown: ``[rank 1]``, ``[launcher]``."""
    return "[launcher]" if rank is None else f"[rank {rank}]"
