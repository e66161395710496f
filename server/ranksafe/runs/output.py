"""The ranks' output, read while it is written, as whole lines: from files, or as the supervisor passes it on."""

from __future__ import annotations

import json
import os
import re
import select
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ranksafe.localization import Language, Translated
from ranksafe.runs.kept_output import KEPT_PARTS, part_name, parts
from ranksafe.runs.targets.protocol import Output

_NAME = re.compile(r"(?:rank(?P<rank>\d+)|launcher)\.(?P<stream>stdout|stderr|jsonl)\Z")
_LONGEST_LINE = 64 * 1024
_LONGEST_ENTRY = 64 * 2**20
_LONGEST_HEADER = 64 * 1024
_CHUNK = 1024 * 1024
_MOST_AT_ONCE = 8 * 2**20
"""Of one file in one look: a rank may write faster than anything is read, and the others, and a wish to cancel, have
their turn."""


@dataclass(slots=True)
class _Lines:
    """What one process writes into one stream, cut at the ends of lines."""

    rank: int | None
    stream: str
    prefix: str = ""
    rest: bytes = b""

    def take(self, data: bytes, *, final: bool = False) -> Iterator[Output]:
        """Whole lines, all in one; of a line that does not end, a piece from time to time, and with ``final`` the
        last."""
        whole, end, self.rest = (self.rest + data).rpartition(b"\n")
        if end:
            yield from self._said(whole)
        if len(self.rest) > (_LONGEST_ENTRY if self.stream == "jsonl" else _LONGEST_LINE):
            yield from self._said(self.rest, goes_on=True)
            self.rest = b""
        if final and self.rest:
            yield from self._said(self.rest)
            self.rest = b""

    def _said(self, data: bytes, *, goes_on: bool = False) -> Iterator[Output]:
        text = data.decode("utf-8", "surrogateescape")
        if self.stream == "jsonl":
            for line in text.split("\n"):
                yield Output(self.rank, self.stream, line)
            return
        if "\r" in text:
            text = "\n".join(map(_as_left_on_a_terminal, text.split("\n")))
        if self.stream == "stderr":
            # torch's excepthook marks its lines with the rank too; once is enough.
            mark = f"[rank{self.rank}]: "
            text = text.removeprefix(mark).replace("\n" + mark, "\n")
        if self.prefix:
            text = self.prefix + text.replace("\n", "\n" + self.prefix)
        yield Output(self.rank, self.stream, text, goes_on)


@dataclass(slots=True)
class _Source:
    path: Path
    lines: _Lines
    file: BinaryIO | None = None
    number: int = 0
    """Of the part that is being read (`kept_output`)."""
    is_over: bool = field(default=False)


class OutputFollower:
    """Follows every output file of a run directory, those that appear later included.

    ``also``: names of further files, whose lines are the launchers'; its group 1 says whose they are. ``streams``:
    those that are looked at. ``language``: of what is said of output that is gone.
    """

    def __init__(
        self,
        directory: Path,
        also: re.Pattern[str] | None = None,
        *,
        streams: tuple[str, ...] = ("stdout", "stderr", "jsonl"),
        language: Language = "en",
    ) -> None:
        self._directory = directory
        self._also = also
        self._streams = streams
        self._language = language
        self._sources: dict[str, _Source] = {}

    def new_lines(self, final: bool = False) -> list[Output]:
        """The lines completed since the last call; with ``final``, unfinished ones too."""
        self._find()
        lines: list[Output] = []
        # What was written last since the previous look comes last: the files themselves know no common order.
        for source in sorted(self._sources.values(), key=_last_written):
            if not source.is_over:
                lines += self._read(source, final)
        return lines

    def _find(self) -> None:
        try:
            paths = sorted(self._directory.iterdir())
        except OSError:
            return  # deleted under the run; what is open can still be read
        for path in paths:
            if path.name in self._sources:
                continue
            match = _NAME.match(path.name)
            if match and match["stream"] in self._streams:
                rank = None if match["rank"] is None else int(match["rank"])
                self._sources[path.name] = _Source(path, _Lines(rank, match["stream"]))
            elif self._also and (other := self._also.fullmatch(path.name)):
                source = _Source(path, _Lines(None, "stderr", prefix=f"{other[1]}: "))
                self._sources[path.name] = source

    def _read(self, source: _Source, final: bool) -> Iterator[Output]:
        left = None if final else _MOST_AT_ONCE
        while left is None or left > 0:
            if source.file is None and not _open(source):
                break
            assert source.file is not None
            data = source.file.read(_CHUNK)
            if data:
                left = None if left is None else left - len(data)
                yield from source.lines.take(data)
            elif not (yield from self._next_part(source)):
                break
        if final:
            yield from source.lines.take(b"", final=True)
            source.is_over = True
            if source.file is not None:
                source.file.close()

    def _next_part(self, source: _Source) -> Generator[Output, None, bool]:
        """Go on to the part after this one, if there is one: this one is complete then. Returns whether there was."""
        later = [number for number in parts(str(source.path)) if number > source.number]
        if not later:
            return False
        assert source.file is not None
        if data := source.file.read(
            _CHUNK
        ):  # written after the last look, before the next part was begun
            yield from source.lines.take(data)
            return True
        source.file.close()
        source.file = None
        if later[0] > source.number + 1:
            yield from source.lines.take(b"", final=True)
            yield Output(
                None, "status", _GONE.filled(name=source.path.name).in_language(self._language)
            )
        source.number = later[0]
        for old in range(1, later[-1] - KEPT_PARTS):
            Path(part_name(str(source.path), old)).unlink(missing_ok=True)
        return True


class PassedOn:
    """What a supervisor says on its standard output (`runs.drain`)."""

    def __init__(self, descriptor: int, language: Language) -> None:
        self._descriptor = descriptor
        os.set_blocking(self._descriptor, False)
        self._language = language
        self._buffer = b""
        self._lines: dict[str, _Lines] = {}
        self._left_out: dict[str, int] = {}
        self.report: dict[str, Any] = {}
        """The supervisor's last word, once it has come."""

    def new_lines(self, final: bool = False) -> list[Output]:
        """What has come since the last call; with ``final``, unfinished lines too."""
        found: list[Output] = []
        left = _MOST_AT_ONCE
        while left > 0 or final:
            if not final and not select.select([self._descriptor], [], [], 0.002)[0]:
                break
            try:
                data = os.read(self._descriptor, _CHUNK)
            except BlockingIOError:
                break
            if not data:
                break
            left -= len(data)
            found += self._take(data)
        if final:
            for lines in self._lines.values():
                found += lines.take(b"", final=True)
        return found

    def _take(self, data: bytes) -> Iterator[Output]:
        buffer = self._buffer + data
        at = 0
        while (end := buffer.find(b"\n", at, at + _LONGEST_HEADER)) >= 0:
            kind, _, rest = buffer[at:end].decode("utf-8", "replace").partition(" ")
            name, _, number = rest.partition(" ")
            size = int(number) if kind == "output" else 0
            if len(buffer) < end + 1 + size:
                break
            at = end + 1 + size
            if kind == "output":
                yield from self._of(name).take(buffer[end + 1 : at])
            elif kind == "left-out":
                yield from self._of(name).take(b"", final=True)
                text = _LEFT_OUT.filled(name=name, megabytes=f"{int(number) / 2**20:.1f}")
                yield Output(None, "status", text.in_language(self._language))
            elif kind == "trouble":
                text = _TROUBLE.filled(reason=rest)
                yield Output(None, "status", text.in_language(self._language))
            elif kind == "report":
                self.report = json.loads(rest)
        self._buffer = buffer[at:]

    def _of(self, name: str) -> _Lines:
        if name not in self._lines:
            match = _NAME.match(name)
            assert match is not None
            rank = None if match["rank"] is None else int(match["rank"])
            self._lines[name] = _Lines(rank, match["stream"])
        return self._lines[name]


def _open(source: _Source) -> bool:
    try:
        source.file = Path(part_name(str(source.path), source.number)).open("rb")  # noqa: SIM115
    except OSError:
        return False
    return True


def _last_written(source: _Source) -> tuple[int, bool]:
    """Kernels stamp files a few milliseconds coarse; within those, output usually comes before the error."""
    file = source.file
    stamp = 0 if file is None or file.closed else os.fstat(file.fileno()).st_mtime_ns
    return stamp, source.lines.stream == "stderr"


def _as_left_on_a_terminal(line: str) -> str:
    """Of a progress bar's many states, the last."""
    return line.rstrip("\r").rsplit("\r", 1)[-1]


_GONE = Translated(
    en="part of {name} came faster than it could be read, and is not shown",
    zh_cn="{name} 的一部分输出过快，来不及读取，未显示",
)
_LEFT_OUT = Translated(
    en="{megabytes} MB of {name} are not shown: whoever reads this output had stopped to read",
    zh_cn="{name} 有 {megabytes} MB 未显示：读取此输出的一方曾停止读取",
)
_TROUBLE = Translated(
    en="the run's files cannot be written ({reason}): the run goes on, and less of it can be explained",
    zh_cn="无法写入运行文件（{reason}）：运行继续，但能解释的内容会减少",
)
