"""Tracebacks of ranks as a terminal shows them: one for all ranks that fail alike, with libraries' frames folded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from ranksafe.localization import Language, Translated

_PREFIX = re.compile(r"\[rank\d+\]: ?")
"""What torch's excepthook puts before each line, PyTorch 2.3 and later."""
_START: Final = "Traceback (most recent call last):"
_FRAME = re.compile(r'  File "(?P<file>[^"]*)", line \d+')
_PACKAGE = re.compile(r"[/\\](?:site|dist)-packages[/\\](?P<name>\w+)")
_LIBRARY = re.compile(rf"{_PACKAGE.pattern}|[/\\]lib[/\\]python3[.\d]*[/\\]|^<frozen ")
_OURS = re.compile(r"[/\\]inject[/\\]ranksafe_\w+[/\\]")
_PYTHON: Final = "Python"
_LONGEST: Final = 500
"""Lines; CPython folds frames that repeat, so that even endless recursion prints fewer."""
_UNLIKE = re.compile(r"0x[0-9a-f]+|\d+")
_SAME = Translated(
    "the same traceback as rank {rank}: {said}", "与 rank {rank} 相同的 traceback：{said}"
)
_FOLDED = Translated("  … {count} frames in {names}", "  … {names} 中的 {count} 个栈帧")


class RankTracebacks:
    """Keeps a rank's traceback until its last line has come, to see whether another rank has printed it."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self._kept: dict[int, list[str]] = {}
        self._shown: dict[str, int] = {}

    def lines(self, rank: int, line: str) -> list[str]:
        """What is to be shown now that a rank has printed a line."""
        kept = self._kept.get(rank)
        bare = _PREFIX.sub("", line, count=1) if line.startswith("[rank") else line
        if kept is None:
            if bare != _START:
                return [line]
            self._kept[rank] = [bare]
            return []
        kept.append(bare)
        if (not bare or bare[0].isspace()) and len(kept) < _LONGEST:
            return []
        del self._kept[rank]
        return self._once(rank, kept)

    def concerns(self, rank: int, text: str) -> bool:
        """Whether a traceback begins in what a rank has printed, or goes on there."""
        return rank in self._kept or _START in text

    def rest(self) -> Iterator[tuple[int, str]]:
        """What was kept of tracebacks whose end never came, with the ranks."""
        for rank, kept in self._kept.items():
            for line in kept:
                yield rank, line
        self._kept.clear()

    def _once(self, rank: int, traceback: list[str]) -> list[str]:
        alike = _UNLIKE.sub("#", "\n".join(traceback))
        first = self._shown.setdefault(alike, rank)
        if first == rank:
            return list(_folded(traceback, self._language))
        same = _SAME.filled(rank=first, said=traceback[-1])
        return [same.in_language(self._language)]


def _folded(traceback: Sequence[str], language: Language) -> Iterator[str]:
    """The traceback without our own frames; of each run of other libraries' the number, of the last run the last."""
    head, *frames = _frames(traceback[:-1])
    frames = [frame for frame in frames if not _OURS.search(_file(frame))]
    yield from head
    for is_library, run in groupby(frames, key=lambda frame: bool(_LIBRARY.search(_file(frame)))):
        found = list(run)
        shown = found[-1:] if found[-1] is frames[-1] else []
        folded = found[: len(found) - len(shown)]
        if not is_library or len(folded) < 2:
            folded, shown = [], found
        if folded:
            names = ", ".join(dict.fromkeys(_library(frame) for frame in folded))
            yield _FOLDED.filled(count=len(folded), names=names).in_language(language)
        for frame in shown:
            yield from frame
    yield traceback[-1]


def _frames(lines: Sequence[str]) -> list[list[str]]:
    """The lines before the first frame, then those of each frame."""
    found: list[list[str]] = [[]]
    for line in lines:
        if _FRAME.match(line):
            found.append([])
        found[-1].append(line)
    return found


def _file(frame: Sequence[str]) -> str:
    found = _FRAME.match(frame[0])
    return found["file"] if found else ""


def _library(frame: Sequence[str]) -> str:
    found = _PACKAGE.search(_file(frame))
    return found["name"] if found else _PYTHON
