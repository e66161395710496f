"""Stacks of fatal signals (SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL) through faulthandler."""

from __future__ import annotations

import faulthandler
import os
from typing import IO

_kept_open: list[IO[str]] = []


def install(directory: str, rank: int) -> None:
    """Write fatal stacks to a file of this rank, unless the user has already chosen a place."""
    if faulthandler.is_enabled():
        return
    path = os.path.join(directory, f"rank{rank}.fatal")
    file = open(path, "a", encoding="utf-8")
    _kept_open.append(file)
    faulthandler.enable(file=file, all_threads=True)
