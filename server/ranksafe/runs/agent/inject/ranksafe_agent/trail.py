"""The lines of the user's files that the main thread executed last, in order, divided where it called collectives.

Where two ranks part is where these lists part, after the last collective that both called alike.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import threading
from _thread import get_ident
from typing import Any

_MOST_LINES = 1000
_MOST_PARTS = 8


class Trail:
    """Of one rank; empty where nobody tells of lines."""

    def __init__(self) -> None:
        self.main = threading.main_thread().ident
        self.lines: collections.deque[tuple[str, int]] = collections.deque(maxlen=_MOST_LINES)
        self.parts: collections.deque[tuple[str, list[tuple[str, int]]]] = collections.deque(
            maxlen=_MOST_PARTS
        )
        self.path = ""

    def note(self, filename: str, line: int) -> None:
        """A line is about to be executed."""
        if get_ident() == self.main:
            self.lines.append((filename, line))

    def cut(self, call: str) -> None:
        """A collective is called by the line noted last."""
        if self.path and get_ident() == self.main:
            self.parts.append((call, list(self.lines)))
            self.lines.clear()

    def write(self) -> None:
        """Write it down for who explains the run; never raises."""
        if not self.path:
            return
        files: dict[str, int] = {}
        parts: list[tuple[str, list[tuple[str, int]]]] = [*self.parts, ("", list(self.lines))]
        data: dict[str, Any] = {
            "parts": [
                [call, [(files.setdefault(os.path.realpath(f), len(files)), n) for f, n in lines]]
                for call, lines in parts
            ],
        }
        data["files"] = list(files)
        temporary = self.path + ".new"
        with contextlib.suppress(OSError):
            with open(temporary, "w", encoding="utf-8", errors="surrogateescape") as file:
                json.dump(data, file)
            os.replace(temporary, self.path)


here = Trail()
"""Of this process."""
