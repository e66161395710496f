"""The combined log: all ranks' lines in the order they were seen, each marked with its rank."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TextIO

from ranksafe.runs.targets.protocol import Output


class CombinedLog:
    """Written while the run goes on. A full disk ends the log, not the run."""

    def __init__(self, path: Path) -> None:
        try:
            self._file: TextIO | None = path.open("w", encoding="utf-8")
        except OSError:
            self._file = None

    def write(self, line: Output) -> None:
        """Append a line with its mark."""
        if self._file is None:
            return
        try:
            self._file.write(f"{mark(line.rank)} {line.text}\n")
            self._file.flush()
        except OSError:
            self._file = None

    def close(self) -> None:
        """No more lines."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()


def mark(rank: int | None) -> str:
    """How a line's origin is shown: ``[rank 1]``, ``[launcher]``."""
    return "[launcher]" if rank is None else f"[rank {rank}]"
