"""The lines of the user's files that the main thread executed last, in order, and its collectives between them.

Where two ranks part is where these lists part, after the last collective that both called alike. It is a ring in a file
mapped into memory, as the collectives' (``detectors.collectives``), so that it is there however the process ends.

`RECORD` and `CALL` are read by ``ranksafe.runs.compared_ranks.trails``.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
from _thread import get_ident

from .descriptors import mapped_file
from .journal import Journal

RECORD = struct.Struct("<III")
"""File, line and 0; or `CALL`, the group and the number of the call in it. Both numbers of names count from 1."""
CALL = 0xFFFFFFFF
HEAD = struct.Struct("<Q")
"""How many records were ever written."""
SLOTS = 16384


class Trail:
    """Of one rank; empty where nobody tells of lines."""

    def __init__(self) -> None:
        self.main = threading.main_thread().ident
        self.files: dict[str, int] = {}
        self.written = 0
        self.ring: mmap.mmap | None = None
        self.journal: Journal | None = None

    def open(self, path: str, journal: Journal) -> None:
        """Keep it in a file from now on. Raises OSError."""
        size = HEAD.size + SLOTS * RECORD.size
        self.ring, self.journal = mapped_file(path, size), journal

    def note(self, filename: str, line: int) -> None:
        """A line is about to be executed."""
        if self.ring is not None and get_ident() == self.main:
            self._write(self.ring, self.files.get(filename) or self._new(filename), line, 0)

    def call(self, group: int, number: int) -> None:
        """A collective is called by the line noted last."""
        if self.ring is not None and get_ident() == self.main:
            self._write(self.ring, CALL, group, number)

    def _write(self, ring: mmap.mmap, *record: int) -> None:
        RECORD.pack_into(ring, HEAD.size + self.written % SLOTS * RECORD.size, *record)
        self.written += 1
        HEAD.pack_into(ring, 0, self.written)

    def _new(self, filename: str) -> int:
        number = self.files[filename] = len(self.files) + 1
        if self.journal is not None:
            self.journal.write("trail-file", number=number, file=os.path.realpath(filename))
        return number


here = Trail()
"""Of this process."""


def _in_child() -> None:
    here.ring = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
