"""Reads a log piece by piece and keeps, for every rank, the lines that may tell of a failure."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TypeVar, cast

from ranksafe.runs.log_text.boxes import unboxed
from ranksafe.runs.log_text.decode import Decoder
from ranksafe.runs.log_text.excerpt import Excerpt, is_telling, telling_places
from ranksafe.runs.log_text.launches import Launches
from ranksafe.runs.log_text.prefixes import Origin, Prefixes, pieces
from ranksafe.runs.log_text.progress import is_bar

_ALL_STREAMS = 16_000_000
"""Characters kept of all streams together."""
_ONE_STREAM = 250_000
_LEAST = 8_000
_MOST_STREAMS = 20_000
_TAIL_LINES = 400
_TAIL_WITHIN = 4_000
"""Lines of a piece among which its last ones are looked for: there may be nothing but progress bars."""
_HEAD_LINES = 200
_LONGEST_LINE = 8_000
_WATCHED = 2_000
"""Lines after a telling one in which its stream may go on, between those of other ranks."""

Line = tuple[int, str]
Found = TypeVar("Found")


class Stream(list[Line]):
    """The lines of one source, with what was found in them."""

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        super().__init__(lines)
        self._found: dict[Callable[[list[Line]], object], object] = {}

    def once(self, find: Callable[[list[Line]], Found]) -> Found:
        """What ``find`` finds in the lines, which does not change any more: it looks only once."""
        if find not in self._found:
            self._found[find] = find(self)
        return cast(Found, self._found[find])


@dataclass(slots=True)
class SaidBy:
    """What was kept of a log, by who said it. Lines have their number in the log."""

    ranks: dict[int, Stream]
    """Of each rank, without its marks. Numbers below zero: processes whose rank the log does not tell."""
    others: list[Stream]
    """Of nobody, or of a machine as a whole: launchers, schedulers, ranks before they knew their number; one list
    per source."""
    tail: list[Line]
    """The last lines as they stood, whoever said them."""
    head: list[Line] = field(default_factory=list)
    """The first lines as they stood: programs print there what they are about to do."""
    uncaught: set[int] = field(default_factory=set)
    """Ranks whose traceback torch's excepthook printed: nothing caught it."""
    has_bars: bool = False
    """Whether there were progress bars near its end."""
    earlier: SaidBy | None = None
    """What the launch before said, where several wrote into one log; all else is the last one's."""


class LogReader:
    """``feed`` bytes as they come, ``finish``, then ask `said`; asking earlier tells what is known so far."""

    def __init__(self) -> None:
        self._decoder = Decoder()
        self._prefixes = Prefixes()
        self._streams: dict[tuple[str, int | None], Excerpt] = {}
        self._origins: dict[str, Origin] = {}
        self._head: list[Line] = []
        self._tail: deque[Line] = deque(maxlen=_TAIL_LINES)
        self._watched = 0
        self._before = ""
        self._open = 0
        self._uncaught: set[int] = set()
        self._bar: Line | None = None
        self._launches = Launches()
        self._earlier: SaidBy | None = None
        self.count = 0
        self.telling = 0
        """Telling lines so far: nothing new is to be found while it stays the same."""

    def feed(self, data: bytes) -> None:
        """Some more of the log."""
        self._read(self._decoder.feed(data))

    def finish(self) -> None:
        """The log ends here."""
        self._read(self._decoder.finish())

    def _read(self, text: str) -> None:
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        if not lines:
            return
        recent = (line for _, line in self._tail)
        first, *others = self._launches.parts(text, lines, recent)
        self._read_part(first, text if not others else "\n".join(first))
        for part in others:
            self._begin_anew()
            self._read_part(part, "\n".join(part))

    def _begin_anew(self) -> None:
        """Another launch writes from here on."""
        if not self._streams:
            return
        self._earlier = replace(self.said(), earlier=None)
        self._streams.clear()
        self._origins.clear()
        self._head.clear()
        self._tail.clear()
        self._uncaught.clear()
        self._bar = None
        self._watched = self._open = 0
        self._before = ""

    def _read_part(self, lines: list[str], text: str) -> None:
        last = self.count + len(lines)
        places = telling_places(text)
        if places or self._open:
            self._read_lines(lines, places)
        begin = last - len(lines) + 1
        for at, line in enumerate(lines[: _HEAD_LINES - len(self._head)], begin):
            if line.strip() and not is_bar(line):
                self._head.append((at, line[:2000]))
        self.count = last
        self._keep_tail(lines[-_TAIL_WITHIN:], is_whole=len(lines) <= _TAIL_WITHIN)

    def _keep_tail(self, lines: list[str], *, is_whole: bool) -> None:
        """The last ones of a piece's last lines, or of all of them."""
        kept: list[Line] = []
        bar: Line | None = None
        for before, line in enumerate(reversed(lines)):
            if is_bar(line):
                bar = bar or (self.count - before, line[:2000])
            elif line.strip():
                kept.append((self.count - before, line[:2000]))
                if len(kept) == _TAIL_LINES:
                    break
        self._bar = bar or self._bar
        if not is_whole and len(kept) < _TAIL_LINES:
            self._tail.clear()  # of what came between nothing is known
        self._tail.extend(reversed(kept))

    def _read_lines(self, lines: list[str], places: list[int]) -> None:
        remaining = iter([*places, sys.maxsize])
        place, start = next(remaining), 0
        for index, line in enumerate(lines):
            self.count += 1
            end = start + len(line)
            telling = place <= end
            while place <= end:
                place = next(remaining)
            start = end + 1
            if telling:
                self._watched = self.count + _WATCHED
                self._before = lines[index - 1] if index else ""
                self._split(line, telling)
            elif self._open:
                if self.count < self._watched:
                    self._split(line, telling)
                else:
                    self._close()

    def _close(self) -> None:
        for stream in self._streams.values():
            stream.close()
        self._open = 0

    def _split(self, line: str, telling: bool) -> None:
        if len(line) > _LONGEST_LINE:
            line = f"{line[: _LONGEST_LINE - 2000]} … {line[-2000:]}"
        origin, text = self._prefixes.split(line)
        first, *others = pieces(text)
        self._add(origin, first, telling if not others else is_telling(first))
        for other in others:
            inner, text = self._prefixes.split(other)
            if origin.is_node:
                inner = replace(origin, rank=inner.rank)
            self._add(inner, text, telling and is_telling(text))

    def _add(self, origin: Origin, text: str, telling: bool) -> None:
        key = (origin.source, origin.rank)
        stream = self._streams.get(key)
        if stream is None:
            if not telling or len(self._streams) >= _MOST_STREAMS:
                return
            stream = self._streams[key] = Excerpt(self._limit())
            self._origins.setdefault(origin.source, origin)
            if len(self._streams) > _ALL_STREAMS // _ONE_STREAM:
                for each in self._streams.values():
                    each.shrink(self._limit())
        if not telling and is_bar(text):
            return
        self.telling += telling
        before = stream.is_open
        if telling and not before and self._before:
            # What stands right above a traceback tells whether it was logged.
            above, words = self._prefixes.split(self._before)
            if (above.source, above.rank) == key and not is_bar(words):
                stream.add(self.count - 1, words, True)
        stream.add(self.count, text, telling)
        self._open += stream.is_open - before
        if origin.rank is not None and text.startswith("Traceback (most"):
            self._uncaught.add(origin.rank)

    def last_lines(self, count: int) -> list[str]:
        """The raw end of the log so far, without progress bars."""
        return [line for _, line in self._tail][-count:]

    @property
    def last_bar(self) -> str | None:
        """The state of a progress bar with which the log ends so far."""
        if self._bar is None or (self._tail and self._tail[-1][0] > self._bar[0]):
            return None
        return self._bar[1]

    def _limit(self) -> int:
        streams = max(1, len(self._streams))
        return max(_LEAST, min(_ONE_STREAM, _ALL_STREAMS // streams)) // 2

    def said(self) -> SaidBy:
        """Every stream given to the rank it belongs to.

        A line may name its rank. Where all such lines of one source name the same, its other lines are that rank's too.
        A source without any such line is the rank that its mark numbers, unless it is a machine.
        """
        named: dict[str, set[int]] = {}
        for source, rank in self._streams:
            named.setdefault(source, set())
            if rank is not None:
                named[source].add(rank)
        ranks: dict[int, list[Line]] = {}
        others: list[list[Line]] = []
        unknown = 0
        for (source, rank), stream in self._streams.items():
            lines = unboxed(stream.lines())
            if rank is None:
                rank = self._rank_of(source, named[source])
                if rank is None and self._is_process(source):
                    unknown -= 1
                    rank = unknown
                if rank is None or named[source]:
                    others.append(lines)
                if rank is None:
                    continue
            ranks.setdefault(rank, []).extend(lines)
        return SaidBy(
            ranks={rank: Stream(sorted(lines, key=itemgetter(0))) for rank, lines in ranks.items()},
            others=[Stream(lines) for lines in others],
            tail=list(self._tail),
            head=list(self._head),
            uncaught=set(self._uncaught),
            has_bars=self._bar is not None,
            earlier=self._earlier,
        )

    def _rank_of(self, source: str, named: set[int]) -> int | None:
        if not source:
            return None
        if named:
            return next(iter(named)) if len(named) == 1 else None
        origin = self._origins[source]
        return None if origin.is_node else origin.number

    def _is_process(self, source: str) -> bool:
        """Whether it is one process, although nothing says which rank."""
        origin = self._origins[source]
        return " pid=" in source and not origin.is_node
