"""The ranks' output, read while it is written: per-rank files become whole lines."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from ranksafe.runs.targets.protocol import Output

_NAME = re.compile(r"(?:rank(?P<rank>\d+)|launcher)\.(?P<stream>stdout|stderr|jsonl)\Z")
_LONGEST_LINE = 64 * 1024
_CHUNK = 1024 * 1024
_MOST_AT_ONCE = 8 * 2**20
"""Of one file in one look: a rank may write faster than anything is read, and the others, and a wish to cancel, have
their turn."""


@dataclass(slots=True)
class _Source:
    rank: int | None
    stream: str
    file: BinaryIO
    rest: bytes = field(default=b"")
    prefix: str = ""


class OutputFollower:
    """Follows every output file of a run directory, those that appear later included.

    ``also``: names of further files, whose lines are the launchers'; its group 1 says whose they are.
    """

    def __init__(self, directory: Path, also: re.Pattern[str] | None = None) -> None:
        self._directory = directory
        self._also = also
        self._sources: dict[str, _Source] = {}

    def new_lines(self, final: bool = False) -> list[Output]:
        """The lines completed since the last call; with ``final``, unfinished ones too."""
        self._find()
        lines: list[Output] = []
        # What was written last since the previous look comes last: the files themselves know no common order.
        for source in sorted(self._sources.values(), key=_last_written):
            if not source.file.closed:
                lines += self._read(source, final)
        return lines

    def _find(self) -> None:
        try:
            paths = sorted(self._directory.iterdir())
        except FileNotFoundError:
            return  # deleted under the run; what is open can still be read
        for path in paths:
            match = _NAME.match(path.name)
            if match and path.name not in self._sources:
                rank = None if match["rank"] is None else int(match["rank"])
                self._sources[path.name] = _Source(rank, match["stream"], path.open("rb"))
            elif self._also and path.name not in self._sources:
                if other := self._also.fullmatch(path.name):
                    source = _Source(None, "stderr", path.open("rb"), prefix=f"{other[1]}: ")
                    self._sources[path.name] = source

    def _read(self, source: _Source, final: bool) -> list[Output]:
        texts: list[bytes] = []
        left = None if final else _MOST_AT_ONCE
        while (left is None or left > 0) and (data := source.file.read(_CHUNK)):
            left = None if left is None else left - len(data)
            *whole, source.rest = (source.rest + data).split(b"\n")
            texts += whole
            if len(source.rest) > _LONGEST_LINE:
                texts.append(source.rest)
                source.rest = b""
        if final and source.rest:
            texts.append(source.rest)
            source.rest = b""
        if final:
            source.file.close()
        # torch's excepthook marks its lines with the rank too; once is enough.
        mark = f"[rank{source.rank}]: "
        return [
            Output(source.rank, source.stream, source.prefix + _text(text).removeprefix(mark))
            for text in texts
        ]


def _last_written(source: _Source) -> tuple[int, bool]:
    """Kernels stamp files a few milliseconds coarse; within those, output usually comes before the error."""
    stamp = 0 if source.file.closed else os.fstat(source.file.fileno()).st_mtime_ns
    return stamp, source.stream == "stderr"


def _text(line: bytes) -> str:
    """A line as a terminal would leave it: of a progress bar's many states, the last."""
    text = line.decode("utf-8", "replace").rstrip("\r")
    return text.rsplit("\r", 1)[-1]
