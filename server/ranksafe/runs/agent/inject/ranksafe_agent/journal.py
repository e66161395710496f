"""One JSON object per line and per event, written at once so that a killed rank leaves what it knew."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from . import descriptors, waiting


class Journal:
    """Events of one rank. Forked children share the object but must not write: they are not the rank.

    What is written before the rank is known is held back, and comes behind the journal's first line.
    """

    def __init__(self) -> None:
        self.rank = 0
        self.directory = ""
        """The run's folder; empty until the journal is opened."""
        self.ended_early = False
        """Whether we stopped the program (a smoke run's last step)."""
        self.is_silent = False
        """While processes that this one started are the ranks."""
        self._owner = os.getpid()
        self._descriptor = -1
        self._held: list[bytes] = []

    def open(self, directory: str, rank: int, description: dict[str, Any]) -> None:
        """This process is the rank: begin with ``description``. Raises OSError."""
        self.rank, self.directory, self._owner = rank, directory, os.getpid()
        waiting.here.is_rank = True
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        try:
            opened = os.open(os.path.join(directory, f"rank{rank}.jsonl"), flags, 0o600)
        except OSError:
            self.is_silent = True
            self._held.clear()
            raise
        self._descriptor = descriptors.moved_up(opened)
        held, self._held = self._held, []
        self.write("start", **description)
        for line in held:
            self._append(line)

    @property
    def is_mine(self) -> bool:
        """Whether this process is the rank itself, not a worker it forked."""
        return os.getpid() == self._owner and not self.is_silent

    def write(self, event: str, **fields: Any) -> None:
        """Append an event; never raises."""
        if not self.is_mine:
            return
        for _ in range(2):  # a signal handler of the script's may raise in between
            try:
                line = json.dumps(dict(fields, event=event, time=time.time()), default=repr)
                self._append(line.encode("utf-8", "backslashreplace") + b"\n")
                return
            except Exception:  # a full disk is no reason to end the user's training
                continue

    def _append(self, line: bytes) -> None:
        if self._descriptor < 0:
            self._held.append(line)
        else:
            os.write(self._descriptor, line)
