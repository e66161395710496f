"""What is kept on disk of an output that may never end: its beginning, its end, and what is telling in between.

Standard library only, CPython 3.8+: the supervisor writes such files on hosts, too. ``rank0.stdout`` is the beginning
and only grows; what comes after it lies in ``rank0.stdout.1``, ``rank0.stdout.2`` and so on, of which the newest stay.
Whoever follows an output reads one after the other. ``rank0.stdout.telling`` has what was telling in those that are
gone.
"""

# Part of the supervisor, which is started once per run: pathlib would only make it slower.
# ruff: noqa: PTH108, PTH123, PTH207

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator

HEAD_BYTES = 4 * 2**20
PART_BYTES = 2**20
KEPT_PARTS = 4
_TELLING = (
    b"Traceback (most",
    b"Error: ",
    b"Exception: ",
    b"FAILED",
    b"atal",
    b"Signal ",
    b"Root Cause",
    b"[E",
    b"NCCL WARN",
)
"""Words, no patterns: they are looked for in all that is printed."""
_TELLING_BYTES = 2**18
_AROUND = (200, 4000)
"""Bytes kept before and after what is telling: a traceback follows its first line."""
_MOST_PLACES = 8
"""Of one part: a script that logs an error a thousand times a second has the others' place."""


class KeptOutput:
    """Writes one output. No method raises: `trouble` says why nothing is kept any more."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.trouble: OSError | None = None
        self._descriptor = -1
        self._number = 0
        self._size = 0
        self._telling_size = 0

    def write(self, data: bytes) -> None:
        """Append; lines are not looked at."""
        rest = memoryview(data)
        while rest and self.trouble is None:
            try:
                rest = rest[self._write_some(rest) :]
            except OSError as error:
                self.trouble = error
                self.close()

    def close(self) -> None:
        """Nothing more comes."""
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = -1

    def _write_some(self, data: memoryview) -> int:
        most = PART_BYTES if self._number else HEAD_BYTES
        if self._size >= most:
            self.close()
            self._number, self._size, most = self._number + 1, 0, PART_BYTES
            self._drop(self._number - KEPT_PARTS)
        if self._descriptor < 0:
            name = part_name(self.path, self._number)
            self._descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        written = os.write(self._descriptor, data[: most - self._size])
        self._size += written
        return written

    def _drop(self, number: int) -> None:
        """The oldest part makes room; what is telling in it stays."""
        if number < 1:
            return
        path = part_name(self.path, number)
        left = _TELLING_BYTES - self._telling_size
        with contextlib.suppress(OSError):
            if left > 0:
                with open(path, "rb") as file:
                    told = b"".join(_telling(file.read(PART_BYTES)))[:left]
                if told:
                    with open(self.path + ".telling", "ab") as file:
                        file.write(told)
                    self._telling_size += len(told)
            os.unlink(path)


def part_name(path: str, number: int) -> str:
    """The file of a part; 0 is the beginning."""
    return f"{path}.{number}" if number else path


def parts(path: str) -> list[int]:
    """The numbers of the parts after the beginning that are there, in order."""
    names = (name.rpartition(".")[2] for name in glob.glob(glob.escape(path) + ".*"))
    return sorted(int(name) for name in names if name.isdigit())


def read_end(path: str, most: int) -> bytes:
    """The last ``most`` bytes that are kept, behind what was telling before them. Raises OSError."""
    text = b""
    for number in [*reversed(parts(path)), 0]:
        with open(part_name(path, number), "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - (most - len(text))))
            text = file.read(most - len(text)) + text
        if len(text) >= most:
            break
    with contextlib.suppress(OSError), open(path + ".telling", "rb") as file:
        text = file.read(_TELLING_BYTES) + text
    return text


def _telling(data: bytes) -> Iterator[bytes]:
    end = 0
    for at in sorted(_places(data))[:_MOST_PLACES]:
        if at < end:
            continue
        start = max(end, data.rfind(b"\n", 0, at) + 1, at - _AROUND[0])
        end = min(len(data), at + _AROUND[1])
        yield data[start:end].rstrip(b"\n") + b"\n"


def _places(data: bytes) -> Iterator[int]:
    for word in _TELLING:
        at = data.find(word)
        for _ in range(_MOST_PLACES):
            if at < 0:
                break
            yield at
            at = data.find(word, at + _AROUND[1])
