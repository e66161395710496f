"""The combined log: all ranks' lines in the order they were seen, each marked with its rank."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ranksafe.runs.kept_output import HEAD_BYTES, PART_BYTES, KeptOutput, part_name, parts
from ranksafe.runs.records.redaction import HIDDEN
from ranksafe.runs.targets.protocol import Output

_LEFT_OUT: Final = "[… …]\n".encode()
"""Before and after what is telling of the lines that are left out."""
_LARGEST_BLOTTED = 64 * 2**20


class CombinedLog:
    """Written while the run goes on; of a long one the beginning and the end. A full disk ends the log, not the run."""

    def __init__(self, path: Path, hidden: Sequence[str] = ()) -> None:
        """``hidden``: texts that are not written: launchers quote the command line that failed."""
        self._path = path
        self._hidden = hidden
        self._kept = KeptOutput(str(path))
        self._open: Output | None = None
        """A piece of a line, written last, that goes on."""
        with contextlib.suppress(OSError):
            path.touch(0o600)

    def write(self, line: Output) -> None:
        """Append a line, or several, each with its mark."""
        text = line.text
        for each in self._hidden:
            text = text.replace(each, HIDDEN)
        before, self._open = self._open, line if line.goes_on else None
        text = text.replace("\n", f"\n{mark(line.rank)} ")
        if before is None or not before.is_continued_by(line):
            text = "\n" * (before is not None) + f"{mark(line.rank)} {text}"
        text += "" if line.goes_on else "\n"
        self._kept.write(text.encode("utf-8", "surrogateescape"))

    def close(self) -> None:
        """No more lines: what is kept becomes one file."""
        self._kept.close()
        with contextlib.suppress(OSError):
            self._join(parts(str(self._path)))

    def _join(self, numbers: Sequence[int]) -> None:
        if not numbers:
            return
        last = self._path.with_name(part_name(self._path.name, numbers[-1]))
        logged = HEAD_BYTES + (numbers[-1] - 1) * PART_BYTES + last.stat().st_size
        # For an editor that reads on where it had come to.
        self._path.with_name(self._path.name + ".length").write_text(str(logged))
        telling = self._path.with_name(self._path.name + ".telling")
        with self._path.open("ab") as log:
            if numbers[0] > 1:
                told = telling.read_bytes() if telling.exists() else b""
                log.write(b"\n" + _LEFT_OUT + told + _LEFT_OUT)
            for number in numbers:
                part = Path(part_name(str(self._path), number))
                log.write(part.read_bytes())
                part.unlink()
        telling.unlink(missing_ok=True)


def blot_out(directory: Path, hidden: Sequence[str]) -> None:
    """Take texts out of what the launcher wrote in a run's folder, byte by byte, so that nothing else moves."""
    if not hidden:
        return
    for path in directory.glob("launcher.std*"):
        with contextlib.suppress(OSError), path.open("r+b") as file:
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
