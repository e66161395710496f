"""What is kept of one stream of lines: those that may tell of a failure, with what follows them, in bounded memory."""

from __future__ import annotations

import re
from collections import deque

_PARTS = (
    'Traceback|  File "|> File "|rror|xception|Assertion|terminate called|Original Tr|NCCL WARN|nccl|CUDA|'
    "GPU|atchdog|eartbeat|Gloo|gloo|illed|exitcode|exit code|exit status|return code|xited with|"
    "restart worker group|Root Cause (|signal|SIG|bort|fault|core dumped|free(): |alloc(): |corrupted|oom|"
    "OOM|ut of memory|ut Of Memory|memory.events|annot allocate|slurmstepd|srun:|sbatch:|CANCELLED|reempt|"
    "No space left|uota exceeded|not responding|resolve hostname|verification failed|ermission denied|"
    "gai error|in use|imed out|imeout|Broken pipe|onnection closed|onnection reset|EADDRINUSE|unreachable|"
    "No route|refused|api_key|gated repo|nauthorized|not compatible|too old|undefined symbol|"
    "Parameter indices|did not receive grad|Xid|╭|Terminated|Caught |ERROR|CRITICAL|FAILED|not found|"
    "can't open|rminat|Exit Code|o such file|No module named|library version mismatch|"
    "NVIDIA-SMI has failed|find primary config|device handle|mpirun |conda activate|closed by remote|REMOTE HOST|"
    "no socket interface|encountered in |Was asked to gather"
)
TELLING = tuple(_PARTS.split("|"))
"""Parts of every message that is known or looks like an error; a line without any of them is not looked at."""
_FOLLOWING = 40
"""Lines kept after a telling one: messages of several lines, a launcher's report."""
_LONGEST_LINE = 4_000
_MANY = 5
_MOST_KINDS = 400
_REPEATING = re.compile(r"Assertion `|NCCL WARN|NCCL INFO|Warning: |WARNING")
_DIGITS = re.compile(r"\d+")


def is_telling(line: str) -> bool:
    """Whether the line alone is reason to keep it."""
    return any(part in line for part in TELLING)


def telling_places(text: str) -> list[int]:
    """Where in a piece of a log telling lines have a telling part; far quicker than asking line by line."""
    places: set[int] = set()
    for part in TELLING:
        at = text.find(part)
        while at >= 0:
            places.add(at)
            end = text.find("\n", at)
            if end < 0:
                break
            at = text.find(part, end)
    return sorted(places)


class Excerpt:
    """The telling lines of one stream: the first ones and the last ones, up to ``limit`` characters each.

    Of a message that is printed over and over, as by every thread of a GPU kernel, the first few are kept.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head: list[tuple[int, str]] = []
        self._head_size = 0
        self._tail: deque[tuple[int, str]] = deque()
        self._tail_size = 0
        self._open = 0
        self._repeats: dict[str, int] = {}

    @property
    def is_open(self) -> bool:
        """Whether the next line is wanted, telling or not."""
        return self._open > 0

    def close(self) -> None:
        """Nothing more is wanted of what follows the last telling line."""
        self._open = 0

    def add(self, at: int, line: str, telling: bool) -> None:
        """One line of the stream; ``at``: its number in the log."""
        if telling:
            self._open = _FOLLOWING
        elif self._open:
            self._open -= 1
        else:
            return
        if telling and self._is_repeated(line):
            return
        if len(line) > _LONGEST_LINE:
            line = f"{line[: _LONGEST_LINE - 1000]} … {line[-1000:]}"
        if self._head_size < self._limit:
            self._head.append((at, line))
            self._head_size += len(line) + _COST
            return
        self._tail.append((at, line))
        self._tail_size += len(line) + _COST
        while self._tail_size > self._limit and len(self._tail) > _FOLLOWING:
            self._tail_size -= len(self._tail.popleft()[1]) + _COST

    def lines(self) -> list[tuple[int, str]]:
        """What was kept, in order, with the lines' numbers."""
        return [*self._head, *self._tail]

    def shrink(self, limit: int) -> None:
        """Keep less from now on; what the head holds already stays."""
        self._limit = min(self._limit, limit)

    def _is_repeated(self, line: str) -> bool:
        if not _REPEATING.search(line):
            return False
        kind = _DIGITS.sub("#", line[:300])
        if kind not in self._repeats and len(self._repeats) >= _MOST_KINDS:
            return False
        self._repeats[kind] = count = self._repeats.get(kind, 0) + 1
        return count > _MANY


_COST = 120
"""What a kept line takes besides its characters."""
