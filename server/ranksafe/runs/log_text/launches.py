"""Where a log begins anew: several launches wrote into one file, one after the other (``nohup … >> log``).

A launch has ended where a launcher or a scheduler says so, or where it was interrupted. What comes after it is another
one's if it begins as launches do, or as this log did: first lines come once. Lines that came again and again before
that end tell nothing. A traceback may have ended it, too, where nothing else says so: then the very first line has to
be among those that come again, since another process that is slower prints only the later ones after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ranksafe.runs.log_text.excerpt import is_telling
from ranksafe.runs.log_text.progress import is_bar, is_progress

_PARTS = (
    *("got signal: ", "  exitcode  : ", "returned non-zero exit status", "died with <Signals"),
    *("exits with return code", "HYDRA_FULL_ERROR", ": error: ", "KeyboardInterrupt"),
)
_ENDED = re.compile(
    r"SignalException: Process \d+ got signal: |^\s*exitcode  : -?\d|returned non-zero exit status|died with <Signals"
    r"|exits with return code = -?\d|^srun: error: \S+: tasks? [\d,-]+: |\*\*\* STEP \S+ ON \S+ CANCELLED AT "
    r"|KeyboardInterrupt$"
    r"|(?P<rank>^Set the environment variable HYDRA_FULL_ERROR=1|^\S+\.py: error: )"
)
"""The end of torchrun (torch 1.9 to 2.13), accelerate, DeepSpeed's launcher (0.19), a step of Slurm, an interruption;
``rank``: Hydra's (1.3) and argparse's, which may be that of one rank of several."""
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
_ANEW = "nohup: ignoring input"
"""GNU nohup's only word, before anything of the program: no end has to be seen."""
_PROMPT = re.compile(r"^(?:\([\w.-]+\) )?[\w.-]+@[\w.-]+:[~/][^$#]{0,200}[$#] \S")
"""Of bash, as Debian and conda set it, with a command: text that was copied from a terminal."""
_TRACEBACK = "Traceback (most"
_RAISED = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception)(?::|$)")
_HEAD_LINES = 40
_HEAD_WITHIN = 400
"""Lines of a launch among which its first ones are: of some nothing else comes than steps."""
_LOOKED_AT = 300
"""Lines after an end among which the next launch has to begin."""
_ALIKE = 2
_ALIKE_AFTER_TRACEBACK = 3
_LEAST_LETTERS = 12
_NUMBERS = re.compile(r"(?<![\da-f])(?=[a-f]*\d)[\da-f]+", re.IGNORECASE)


class Launches:
    """What is known of the launch whose lines come."""

    def __init__(self) -> None:
        self._head: dict[str, None] = {}
        self._gathers = True
        self._looked = 0
        self._left = 0
        self._raises = False
        """Whether the lines are those of a traceback."""
        self._only_raised = False
        """Whether nothing but a traceback ended the launch before."""
        self._met: set[str] = set()
        self._before: list[str] = []
        """Lines before the end of the launch, but for its first ones."""
        self._recurring: set[str] = set()
        """Of those that came again, the ones that are among these, too."""

    def parts(self, text: str, lines: list[str], recent: Iterable[str]) -> Iterator[list[str]]:
        """Whole lines, as ``text`` and apart, cut where another launch begins; the first part may be empty.

        ``recent``: the last lines of the log before them.
        """
        ends = [part for part in _PARTS if part in text]
        prompts = "$ " in text and "@" in text
        raises = (self._raises or _TRACEBACK in text) and (bool(self._head) or self._gathers)
        marked = prompts or raises or _ANEW in text
        if not (self._left or self._gathers or marked or ends):
            yield lines
            return
        start = first = 0
        for at, line in enumerate(lines):
            anew = line.startswith(_ANEW) or (prompts and _PROMPT.match(line) is not None)
            if self._left or anew:
                self._left = max(0, self._left - 1)
                before = len(self._met)
                begins = anew or self._is_beginning(line)
                if not before and (begins or self._met):
                    first = at
                if begins:
                    yield lines[start:first]
                    start = first
                    self._left = 0
                    self._begin_head()
            self._gather(line)
            ended = _ENDED.search(line) if any(part in line for part in ends) else None
            if (raises and self._ends_traceback(line)) or ended:
                if ended and ended["rank"]:
                    self._head.clear()
                self._only_raised = not ended and (not self._left or self._only_raised)
                self._gathers = False
                self._left = _LOOKED_AT
                self._met, self._recurring = set(), set()
                earlier = [*recent, *lines[max(start, at - _LOOKED_AT) : at]]
                self._before = earlier[_HEAD_LINES:]
        yield lines[start:]

    def _ends_traceback(self, line: str) -> bool:
        if line.startswith(_TRACEBACK):
            self._raises = True
            return False
        if not self._raises or line.startswith(" ") or not _RAISED.match(line):
            return False
        self._raises = False
        return True

    def _begin_head(self) -> None:
        self._head = {}
        self._gathers = True
        self._looked = 0

    def _gather(self, line: str) -> None:
        if not self._gathers:
            return
        self._looked += 1
        is_full = len(self._head) >= _HEAD_LINES or self._looked > _HEAD_WITHIN
        if _TRACEBACK in line or is_full:
            self._gathers = False
        elif not (line.startswith(" ") or is_telling(line) or is_bar(line) or is_progress(line)):
            alike = _alike(line)
            if sum(map(str.isalpha, alike)) >= _LEAST_LETTERS:
                self._head[alike] = None

    def _is_beginning(self, line: str) -> bool:
        if not self._only_raised:
            return _BEGINS.search(line) is not None or self._meets(line) >= _ALIKE
        first = next(iter(self._head), None)
        if first is None or not (self._met or line.startswith(first.partition("#")[0])):
            return False
        return self._meets(line) >= _ALIKE_AFTER_TRACEBACK and first in self._met

    def _meets(self, line: str) -> int:
        """How many of the first lines have come again, with this one."""
        alike = _alike(line)
        if alike in self._head and alike not in self._met and alike not in self._recurring:
            recurs = any(_alike(each) == alike for each in self._before)
            (self._recurring if recurs else self._met).add(alike)
        return len(self._met)


def _alike(line: str) -> str:
    return _NUMBERS.sub("#", line[:200].rstrip())
