"""One JSON object per line and per event, written at once so that a killed rank leaves what it knew."""

from __future__ import annotations

import json
import os
import time
from typing import Any


class Journal:
    """Events of one rank. Forked children share the object but must not write: they are not the rank."""

    def __init__(self, directory: str, rank: int) -> None:
        self.rank = rank
        self.ended_early = False
        """Whether we stopped the program (a smoke run's last step)."""
        self._owner = os.getpid()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        path = os.path.join(directory, f"rank{rank}.jsonl")
        self._descriptor = os.open(path, flags, 0o600)

    @property
    def is_mine(self) -> bool:
        """Whether this process is the rank itself, not a worker it forked."""
        return os.getpid() == self._owner

    def write(self, event: str, **fields: Any) -> None:
        """Append an event; never raises."""
        if not self.is_mine:
            return
        for _ in range(2):  # a signal handler of the script's may raise in between
            try:
                line = json.dumps(dict(fields, event=event, time=time.time()), default=repr)
                os.write(self._descriptor, line.encode("utf-8", "backslashreplace") + b"\n")
                return
            except Exception:  # a full disk is no reason to end the user's training
                continue
