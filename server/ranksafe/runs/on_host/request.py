"""How a program on a host reads its request."""

from __future__ import annotations

import os


def read_line() -> bytes:
    """A line of standard input, and not a byte more: what follows is read elsewhere, or waited for with ``select``."""
    line = bytearray()
    while not line.endswith(b"\n"):
        part = os.read(0, 1)
        if not part:
            break
        line += part
    return bytes(line)
