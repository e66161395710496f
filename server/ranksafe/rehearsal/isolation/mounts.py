"""Where file systems are mounted, from ``/proc/self/mountinfo`` (its format: proc(5))."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mounts:
    """The mount points of this process's mount namespace."""

    points: frozenset[str]

    def any_below(self, directory: str) -> bool:
        """Whether something is mounted strictly below ``directory``: then no overlay can be put over it.

        Linux refuses (``clone_private_mount``: "failed to clone lowerpath"), because in a user namespace the mounts
        that came from outside may not be uncovered.
        """
        prefix = directory.rstrip("/") + "/"
        return any(point.startswith(prefix) and point != prefix for point in self.points)


def read_mounts(path: Path = Path("/proc/self/mountinfo")) -> Mounts:
    """What is mounted now. Raises OSError."""
    lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    return Mounts(frozenset(_unescaped(line.split(" ")[4]) for line in lines))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)
