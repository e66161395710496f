"""Output goes to files in a rehearsal; a script that asks for the width of its terminal is told the usual one."""

from __future__ import annotations

import functools
import os

from .settings import Settings

_SIZE = os.terminal_size((80, 24))
_STANDARD_STREAMS = (0, 1, 2)


def install(_settings: Settings) -> None:
    """Let `os.get_terminal_size` answer for the standard streams, whatever they are."""
    original = os.get_terminal_size

    @functools.wraps(original)
    def get_terminal_size(fd: int = 1, /) -> os.terminal_size:
        try:
            return original(fd)
        except OSError:
            if fd not in _STANDARD_STREAMS:
                raise
            return _SIZE

    os.get_terminal_size = get_terminal_size
