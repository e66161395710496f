"""Tracebacks that several processes wrote into one another, line by line, so that none of them is whole.

Processes that fail alike print the same frames. Whatever the order in which their lines came, each frame appears for
the first time after the one that called it, so the frames in the order of their first appearance are the call chain.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from ranksafe.runs.explain.alike import with_sorted_sets
from ranksafe.runs.explain.evidence import Raised
from ranksafe.runs.explain.launcher_report import LAUNCHER_ERRORS
from ranksafe.runs.model import Frame

_HEADER = re.compile(r"Traceback \(most recent call last\):")
_FRAME = re.compile(
    r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>[\w.<>]+)(?![\w.<>])(?P<rest>.*)'
)
_LAST = re.compile(
    r"^\s*(?:[A-Za-z_]\w*\.)*(?P<type>[A-Za-z_]\w*(?:Error|Exception))(?:: (?P<message>.+))?$"
)


def interleaved_traceback(lines: Sequence[tuple[int, str]]) -> Raised | None:
    """What the processes raised; None where they do not say the same.

    ``lines``: of one stream, without the tracebacks that could be read. The result is made up of several processes'
    lines: all of its frames were printed, and more than once.
    """
    headers = sum(len(_HEADER.findall(text)) for _, text in lines)
    if headers < 2:
        return None
    frames: Counter[Frame] = Counter()
    raised: Counter[tuple[str, str]] = Counter()
    for _, text in lines:
        if found := _FRAME.search(text):
            frames[Frame(found["file"], int(found["line"]), found["function"])] += 1
        elif (last := _LAST.match(text)) and last["type"] not in LAUNCHER_ERRORS and frames:
            raised[(last["type"], with_sorted_sets((last["message"] or "").strip()))] += 1
    chain = tuple(frame for frame, times in frames.items() if times > 1)
    if len(raised) != 1 or not chain:
        return None
    (name, message), _ = raised.popitem()
    return Raised(name, message, chain)
