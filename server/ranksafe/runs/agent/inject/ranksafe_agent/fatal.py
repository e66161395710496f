"""Stacks of fatal signals (SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL) through faulthandler."""

from __future__ import annotations

import faulthandler
import os
from typing import IO

from . import descriptors

_kept_open: list[IO[str]] = []


def install(directory: str, rank: int) -> None:
    """Write fatal stacks to a file of this rank, unless the user has already chosen a place."""
    if faulthandler.is_enabled():
        return
    path = os.path.join(directory, f"rank{rank}.fatal")
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    file = open(descriptors.moved_up(opened), "a", encoding="utf-8")
    _kept_open.append(file)
    faulthandler.enable(file=file, all_threads=True)
