"""What a run left behind, as plain data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranksafe.localization import Translated
from ranksafe.runs.explain.collective_order import Mismatch
from ranksafe.runs.kept_output import read_end
from ranksafe.runs.model import Frame

_TAIL_BYTES = 200_000
_JOURNAL_BYTES = 20_000_000
LOOSE = -1.0
"""Stands for the time of a traceback that names no rank: before all others."""
_FIELDS: Mapping[object, Mapping[str, type]] = {
    "start": {"local_rank": int, "world_size": int, "host": str, "pid": int},
    "exception": {"exception": dict},
    "os-exit": {"status": int},
    "exit": {},
    "silent-failure": {"kind": str},
    "step": {"step": int},
    "stopped": {"steps": int},
    "trained-enough": {"steps": int},
}
"""What an event of a rank's journal tells besides its time. Who wrote it may be another host, or the script."""


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception, recorded by the agent or read from a printed traceback."""

    type: str
    """The class's name without its module; empty for a message that was printed and not raised."""
    message: str
    frames: tuple[Frame, ...]
    notes: tuple[str, ...] = ()
    cause: Raised | None = None
    """What it was raised from (``raise … from``)."""
    context: Raised | None = None
    """What was being handled when it was raised."""
    group: tuple[Raised, ...] = ()
    where: str | None = None
    """The thread, replica or worker it happened in, if not in the rank's main thread."""

    @property
    def text(self) -> str:
        """As Python prints the last line of a traceback, notes included."""
        head = ": ".join(part for part in (self.type, self.message) if part)
        return "\n".join((head, *self.notes))

    def chain(self) -> Iterator[Raised]:
        """This exception, then what it came from, outermost first; members of a group after their group."""
        yield self
        for origin in (self.cause, self.context, *self.group):
            if origin is not None:
                yield from origin.chain()


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What a detector saw go wrong without an error."""

    kind: str
    code: str | None
    """The rule it proves, if any."""
    message: Translated
    frames: tuple[Frame, ...]


@dataclass(slots=True)
class RankEvidence:
    """All that is known of one rank."""

    rank: int
    local_rank: int = 0
    world_size: int = 1
    host: str = ""
    pid: int | None = None
    started: float | None = None
    raised: Raised | None = None
    raised_at: float | None = None
    thread_errors: list[Raised] = field(default_factory=list)
    os_exit: int | None = None
    """Status the rank passed to ``os._exit``."""
    asked_exit: int | None = None
    """Status the rank passed to ``sys.exit`` last."""
    exit_frames: tuple[Frame, ...] = ()
    ended: bool = False
    """The interpreter shut down in order (not killed, no ``os._exit``)."""
    ended_at: float | None = None
    exit: int | None = None
    """Status of its process as the supervisor saw it; negative: a signal."""
    watched: bool = False
    """Whether the supervisor would see its process end at once."""
    gone: bool = False
    """Whether the supervisor saw its process end."""
    beat: tuple[Frame, ...] = ()
    """Where the main thread was at the last heartbeat."""
    beat_at: float | None = None
    fatal: tuple[Frame, ...] = ()
    steps: int = 0
    stopped: bool = False
    """Ended by a smoke run's limit."""
    trained_enough: int | None = None
    """After how many steps a rehearsal ended its training; the script went on."""
    group_size: int | None = None
    """World size of the largest process group seen; None: none was initialised."""
    suspicions: list[Suspicion] = field(default_factory=list)
    errors: str = ""
    """The end of its standard error."""

    @property
    def last_seen(self) -> float | None:
        """The last moment the rank is known to have lived."""
        times = [self.started, self.raised_at, self.ended_at, self.beat_at]
        return max((time for time in times if time is not None), default=None)


@dataclass(slots=True)
class Evidence:
    """A run's evidence: its ranks, and what its launcher said."""

    ranks: dict[int, RankEvidence]
    launcher: str = ""
    """The launcher's output; of a saved log, everything."""
    status: str = "exited"
    """As the process's; "timed-out" where it was ended for taking too long, "hung" where its ranks hung."""
    returncode: int | None = None
    expected_ranks: int | None = None
    mismatch: Mismatch | None = None
    """The first collective at which ranks parted, where they are known to have."""
    going_on: bool = False
    """Whether the run has not ended, so that more may come."""
    open_ended: bool = False
    """Whether there may have been more ranks than are known."""
    alike: int = 0
    """How many ranks, numbered or not, raised what the others raised; 0: not counted."""
    last_lines: dict[int, str] = field(default_factory=dict)
    """What a rank, by its number, printed last that is no error; of a saved log whose lines tell the rank."""
    beginning: str = ""
    """The first lines of a saved log, in which programs print their settings."""

    def everything(self) -> str:
        """All that the launcher and the ranks said."""
        errors = (rank.errors for rank in self.ranks.values())
        return "\n".join((self.beginning, self.launcher, *errors))


def load_evidence(directory: Path, expected_ranks: int | None) -> Evidence:
    """Read a run directory; what is missing or damaged is left out."""
    evidence = Evidence({}, expected_ranks=expected_ranks)
    for path in sorted(directory.glob("rank*.jsonl")):
        rank = _load_rank(path)
        if rank is not None:
            evidence.ranks[rank.rank] = rank
    _read_ends(evidence, directory / "launcher.jsonl")
    evidence.launcher = read_tail(directory / "launcher.stdout") + read_tail(
        directory / "launcher.stderr"
    )
    summary = parse_entry(read_tail(directory / "supervisor.json"))
    evidence.status = str(summary.get("status", "lost"))
    evidence.returncode = summary.get("returncode")
    return evidence


def _read_ends(evidence: Evidence, path: Path) -> None:
    """What the supervisor noted of the ranks' processes (`supervisor.RankEnds`)."""
    ranks = {rank.pid: rank for rank in evidence.ranks.values() if rank.pid is not None}
    for entry in entries_of(path):
        rank, status = ranks.get(entry.get("pid", -1)), entry.get("status")
        if rank is None:
            continue
        rank.watched = True
        if entry.get("event") == "rank-ended":
            rank.gone, rank.exit = True, status if isinstance(status, int) else None


def _load_rank(path: Path) -> RankEvidence | None:
    number = path.name.removeprefix("rank").removesuffix(".jsonl")
    if not number.isdigit():
        return None
    rank = RankEvidence(int(number))
    for event in entries_of(path):
        _read(rank, event)
        rank.group_size = _integer(event.get("group")) or rank.group_size
    beat = parse_entry(read_tail(path.with_suffix(".beat")))
    rank.beat = frames_from(beat.get("frames"))
    rank.beat_at = beat["time"] if isinstance(beat.get("time"), (int, float)) else None
    rank.group_size = rank.group_size or _integer(beat.get("group"))
    rank.fatal = fatal_frames(read_tail(path.with_suffix(".fatal")))
    rank.errors = read_tail(path.with_suffix(".stderr"))
    return rank


def _read(rank: RankEvidence, event: Mapping[str, Any]) -> None:
    """What one event of its journal tells."""
    match event.get("event"):
        case "start":
            rank.local_rank, rank.world_size = event["local_rank"], event["world_size"]
            rank.host, rank.pid, rank.started = event["host"], event["pid"], event["time"]
        case "exception":
            _read_exception(rank, event)
        case "os-exit":
            rank.os_exit, rank.ended_at = event["status"], event["time"]
            rank.exit_frames = frames_from(event.get("frames"))
        case "exit":
            rank.ended, rank.ended_at = True, event["time"]
            if isinstance(asked := event.get("asked"), dict):
                rank.asked_exit = _integer(asked.get("status"))
                rank.exit_frames = frames_from(asked.get("frames"))
        case "silent-failure":
            code, message = event.get("code"), translated_from(event.get("message"))
            code = None if code is None else str(code)
            frames = frames_from(event.get("frames"))
            rank.suspicions.append(Suspicion(str(event["kind"]), code, message, frames))
        case "step":
            rank.steps = max(rank.steps, event["step"])
        case "stopped":
            rank.stopped, rank.steps = True, max(rank.steps, event["steps"])
        case "trained-enough":
            rank.trained_enough = event["steps"]


def _read_exception(rank: RankEvidence, event: Mapping[str, Any]) -> None:
    raised = raised_from(event["exception"], event.get("thread"))
    if not event.get("thread"):
        rank.raised, rank.raised_at = raised, event["time"]
    elif rank.raised is None:  # later ones come of the interpreter's going down
        rank.thread_errors.append(raised)


def translated_from(data: Any) -> Translated:
    """A sentence that a journal holds in both languages; a plain string counts for both."""
    if isinstance(data, Mapping):
        english = str(data.get("en", ""))
        return Translated(english, str(data.get("zh_cn", english)))
    return Translated(str(data), str(data))


def raised_from(data: Mapping[str, Any], where: str | None = None) -> Raised:
    """A `Raised` from the agent's JSON."""
    cause, context = data.get("cause"), data.get("context")
    return Raised(
        type=str(data.get("type", "Exception")),
        message=str(data.get("message", "")),
        frames=frames_from(data.get("frames")),
        notes=tuple(str(note) for note in _items(data.get("notes"))),
        cause=raised_from(cause) if isinstance(cause, dict) else None,
        context=raised_from(context) if isinstance(context, dict) else None,
        group=tuple(
            raised_from(each) for each in _items(data.get("group")) if isinstance(each, dict)
        ),
        where=where,
    )


def frames_from(data: Any) -> tuple[Frame, ...]:
    """Frames from the agent's JSON, outermost first; those that name no line are left out."""
    return tuple(
        Frame(
            filename=str(entry.get("file", "")),
            line=entry["line"],
            function=str(entry.get("function", "")),
            source=str(entry.get("source", "")),
            column=_integer(entry.get("column")),
            end_line=_integer(entry.get("end_line")),
            end_column=_integer(entry.get("end_column")),
        )
        for entry in _items(data)
        if isinstance(entry, dict) and isinstance(entry.get("line"), int)
    )


def _items(data: Any) -> Sequence[Any]:
    return data if isinstance(data, (list, tuple)) else ()


def _integer(data: Any) -> int | None:
    return data if isinstance(data, int) else None


_STACK_LINE = re.compile(r'  File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>.+)')
"""As faulthandler writes it; a traceback has a comma more."""


def fatal_frames(text: str) -> tuple[Frame, ...]:
    """The crashed thread's stack in faulthandler's text, outermost first; else the main thread's, the last."""
    frames: list[Frame] = []
    crashed = False
    for line in text.splitlines():
        if "most recent call first" in line:
            if crashed:
                break
            crashed = line.startswith("Current thread")
            frames = []
        elif found := _STACK_LINE.match(line):
            frames.append(Frame(found["file"], int(found["line"]), found["function"]))
    return tuple(reversed(frames))


def parse_entry(text: str) -> dict[str, Any]:
    """A JSON object; empty for anything else, such as a line cut off by a full disk, and for an event that lacks what
    it tells."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) and _is_whole(value) else {}


def _is_whole(entry: Mapping[str, Any]) -> bool:
    event = entry.get("event")
    fields = _FIELDS.get(event) if isinstance(event, str) else None
    return fields is None or (
        isinstance(entry.get("time"), (int, float))
        and all(isinstance(entry.get(name), kind) for name, kind in fields.items())
    )


def entries_of(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a journal's lines, as far as they can be read."""
    return map(parse_entry, read_tail(path, _JOURNAL_BYTES).splitlines())


def read_tail(path: Path, limit: int = _TAIL_BYTES) -> str:
    """The end of a file of the run; empty where there is none."""
    try:
        return read_end(str(path), limit).decode("utf-8", "replace")
    except OSError:
        return ""
