"""Where a log begins anew: several launches wrote into one file, one after the other (``nohup … >> log``).

A launch has ended where a launcher or a scheduler says so, where it was interrupted, or where an exception ended a
traceback. Another one begins after that where its launcher's first words come, or the first lines of this log once
more, in their order. After an exception alone the launcher's words do not count: it may be one rank's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ranksafe.runs.log_text.excerpt import is_telling
from ranksafe.runs.log_text.progress import is_bar, is_progress

_PARTS = (
    *("got signal: ", "  exitcode  : ", "returned non-zero exit status", "died with <Signals"),
    *(
        "exits with return code",
        "HYDRA_FULL_ERROR",
        ": error: ",
        "KeyboardInterrupt",
        "Error",
        "Exception",
    ),
)
_ENDED = re.compile(
    r"SignalException: Process \d+ got signal: |^\s*exitcode  : -?\d|returned non-zero exit status|died with <Signals"
    r"|exits with return code = -?\d|^srun: error: \S+: tasks? [\d,-]+: |\*\*\* STEP \S+ ON \S+ CANCELLED AT "
    r"|KeyboardInterrupt$"
    r"|(?P<rank>^Set the environment variable HYDRA_FULL_ERROR=1|^\S+\.py: error: )"
    r"|(?P<raised>^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception)(?::|$))"
)
"""The end of torchrun (torch 1.9 to 2.13), accelerate, DeepSpeed's launcher (0.19), a step of Slurm, an interruption;
``rank``: Hydra's (1.3) and argparse's, which may be that of one rank of several, as may an exception, ``raised``."""
_BEGINS = re.compile(
    r"Setting OMP_NUM_THREADS environment variable for each process"
    r"|The module torch\.distributed\.launch is deprecated"
    r"|The following values were not passed to `accelerate launch`"
    r"|\[runner\.py:\d+:main\] cmd = "
    r"|^\++ (?:\S+/)?(?:torchrun|python[\d.]*|accelerate|deepspeed|srun|mpirun)\b"
    r"|^srun: job \d+ (?:queued and waiting|has been allocated)"
    r"|^usage: \S+\.py\b"
    r"|(?i:\b(?:try|retry|attempt|restart)\b\W{0,3}\d)"
)
"""The first words of the same launchers, of a shell that tells what it does (``set -x``), and of argparse; and of a
script around a launcher, which counts its tries."""
_ANEW = re.compile(
    r"nohup: ignoring input|(?:\([\w.-]+\) )?[\w.-]+@[\w.-]+:[~/][^$#]{0,200}[$#] \S"
)
"""Words for which no end has to be seen: GNU nohup's, before anything of the program, and a command at bash's prompt,
as Debian and conda set it, in text that was copied from a terminal."""
_SIGNS = ("nohup", "@")
_TRACEBACK = "Traceback (most"
_HEAD_LINES = 3
_HEAD_WITHIN = 400
"""Lines of a launch among which its first ones are: of some nothing else comes than steps."""
_LOOKED_AT = 300
"""Lines after an end among which the next launch has to begin."""
_OF_SEVERAL = 40
"""Lines at the beginning in which each of several ranks may print the same."""
_LEAST_LETTERS = 12
_NUMBERS = re.compile(r"(?<![\da-f])(?=[a-f]*\d)[\da-f]+", re.IGNORECASE)


class Launches:
    """What is known of the launch whose lines come."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._head: list[str] = []
        """Its first lines, without numbers."""
        self._looked = 0
        """Lines that were looked through for them."""
        self._left = 0
        """Lines in which the next launch may begin."""
        self._is_over = False
        """Whether more than an exception says that this one has ended."""
        self._met = 0
        """How many of the first lines have come again since."""

    def parts(self, text: str, lines: list[str], recent: Iterable[str]) -> Iterator[list[str]]:
        """Whole lines, as ``text`` and apart, cut where another launch begins; the first part may be empty.

        ``recent``: the last lines of the log before them.
        """
        ends = [part for part in _PARTS if part in text]
        anew = any(sign in text for sign in _SIGNS)
        if not (self._left or self._looked < _HEAD_WITHIN or anew or ends):
            yield lines
            return
        start = first = 0
        for at, line in enumerate(lines):
            met = self._met
            begins = anew and _ANEW.match(line) is not None
            if begins or self._is_beginning(line):
                first = first if met and not begins else at
                yield lines[start:first]
                start = first
                self._begin()
            elif self._met > met == 0:
                first = at
            self._gather(line)
            ended = _ENDED.search(line) if any(part in line for part in ends) else None
            if ended:
                self._is_over = not ended["raised"] or (self._left > 0 and self._is_over)
                self._end([*recent, *lines[max(start, at - _LOOKED_AT) : at]], ended["rank"])
        yield lines[start:]

    def _is_beginning(self, line: str) -> bool:
        if not self._left:
            return False
        self._left -= 1
        if self._is_over and _BEGINS.search(line):
            return True
        self._met += self._met < len(self._head) and _alike(line) == self._head[self._met]
        return self._met == _HEAD_LINES

    def _gather(self, line: str) -> None:
        """Take a line as one of the first, unless it is a step or an error."""
        if self._looked >= _HEAD_WITHIN or len(self._head) == _HEAD_LINES:
            return
        self._looked = _HEAD_WITHIN if _TRACEBACK in line else self._looked + 1
        if not (line.startswith(" ") or is_telling(line) or is_bar(line) or is_progress(line)):
            alike = _alike(line)
            if sum(map(str.isalpha, alike)) >= _LEAST_LETTERS and alike not in self._head:
                self._head.append(alike)

    def _end(self, before: list[str], of_a_rank: str | None) -> None:
        """The launch has ended; first lines that came again and again before are no mark of another."""
        begun = self._head[:1]
        if of_a_rank or (
            not self._left and any(_alike(line) in begun for line in before[_OF_SEVERAL:])
        ):
            self._head.clear()
        self._looked = _HEAD_WITHIN
        self._left, self._met = _LOOKED_AT, 0


def _alike(line: str) -> str:
    return _NUMBERS.sub("#", line[:200].rstrip())
