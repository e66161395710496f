"""Where one rank stands: it works, waits for others, stands still, is not heard, or is over. Slow is never still.

A rank that is in no collective stands still only if for some time nothing of it has moved: its main thread was not
scheduled once, its other threads and its child processes did nothing worth mentioning, and it is not where programs
wait for a network, a disk or a debugger, or sleep.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from ranksafe.runs.model import Frame
from ranksafe.runs.watch.beat import Beat, Others, Wait

STILL_SECONDS = 15.0
"""Without any sign of life in a place where nothing is known to take long."""
LONG_SECONDS = 300.0
"""The same where the program waits for a process of its own or sleeps, or the system does not tell of signs of life, or
the whole process is stopped or keeps Python's lock while it rests."""
_BUSY = 0.05
_BUSY_THREAD_NANOSECONDS = 20_000_000
_BUSY_SWITCHES = 3
_BUSY_TICKS = 2
_SETTLED_SECONDS = 2.0


class Kind(str, Enum):
    """What a rank does."""

    WORKS = "works"
    WAITS = "waits"
    STILL = "still"
    SILENT = "silent"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a rank stands, and since when by its own clock."""

    kind: Kind
    since: float
    wait: Wait | None = None
    counts: tuple[tuple[str, int], ...] = ()

    def count(self, group: str | None) -> int:
        """How many collectives of a group it has entered."""
        return dict(self.counts).get(group or "", 0)


class WatchedRank:
    """One rank's beats, and what they mean together."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.beat: Beat | None = None
        self.ended_at: float | None = None
        self.end_frames: tuple[Frame, ...] = ()
        """Where it asked for its end, if it did."""
        self.ended_well = False
        """It came to its end by itself, with status 0: its process tells nothing more."""
        self.raised = False
        self.unchanged_since = 0.0
        """Since when stack, steps and collectives are the same, whatever the processor does."""
        self.still_since = 0.0
        self.recorded: Wait | None = None
        """What torch's flight recorder says it waits for on its device; forgotten when it goes on."""
        self.recorded_counts: dict[str, int] = {}
        self.unheard_seconds = 0.0
        """For how long it has neither told nor done anything, while others were heard."""

    def update(self, beat: Beat) -> None:
        """Take the next beat."""
        before, self.beat = self.beat, beat
        if before is None or _place(before) != _place(beat):
            self.unchanged_since = self.still_since = beat.time
            self.recorded, self.recorded_counts = None, {}
        elif _moved(before, beat):
            self.still_since = beat.time

    @property
    def frames(self) -> tuple[Frame, ...]:
        """Where its main thread is, or asked for its end."""
        if self.ended_at is not None:
            return self.end_frames
        return self.beat.frames if self.beat is not None else ()

    def standing(self) -> Standing:
        """Where it stands by its last beat."""
        beat = self.beat
        if self.ended_at is not None:
            return self._as(Kind.ENDED, self.ended_at)
        if beat is None:
            return Standing(Kind.WORKS, 0.0)
        wait = self._wait(beat)
        if self.unheard_seconds >= LONG_SECONDS:
            return self._as(Kind.SILENT, beat.time, wait)
        if wait is not None:
            return self._as(Kind.WAITS, wait.since, wait)
        still = beat.time - self.still_since
        patience = _patience(beat) if still >= STILL_SECONDS else None
        if patience is not None and still >= patience:
            return self._as(Kind.STILL, self.still_since)
        return self._as(Kind.WORKS, self.unchanged_since)

    def _as(self, kind: Kind, since: float, wait: Wait | None = None) -> Standing:
        beat = self.beat
        counts = (*(beat.counts.items() if beat else ()), *self.recorded_counts.items())
        return Standing(kind, since, wait, counts)

    def _wait(self, beat: Beat) -> Wait | None:
        settled = beat.time - self.still_since >= _SETTLED_SECONDS
        for told in beat.waits:
            if not told.frames or settled:
                return told
        if self.recorded is not None:
            return self.recorded
        wait = _inferred(beat, self.still_since) if settled else None
        # Where it is not clear what is waited for, only as long a stillness as anywhere else counts.
        long = beat.time - self.still_since >= STILL_SECONDS
        return wait if wait is None or wait.name == BACKWARD or long else None


def _place(beat: Beat) -> tuple[object, ...]:
    where = tuple((frame.filename, frame.line, frame.function) for frame in beat.frames)
    return where, beat.entered, beat.left, beat.steps


def _moved(before: Beat, beat: Beat) -> bool:
    """Whether anything of the rank did something between two beats with the same stack."""
    passed = max(beat.time - before.time, 0.1)
    if beat.cpu - before.cpu > _BUSY * passed:
        return True
    if beat.main is not None and beat.main != before.main:
        return True
    if beat.others is None:
        return False
    return (
        beat.others.disk
        or beat.others.children_on_disk
        or (before.others is not None and _others_moved(before.others, beat.others))
    )


def _others_moved(before: Others, now: Others) -> bool:
    for thread, (used, switches) in now.threads.items():
        earlier = before.threads.get(thread)
        if earlier is None or used - earlier[0] > _BUSY_THREAD_NANOSECONDS:
            return True
        if switches - earlier[1] >= _BUSY_SWITCHES:
            return True
    children, known = now.children or {}, before.children or {}
    if children.keys() != known.keys():
        return True
    return any(
        ticks - known[child][0] >= _BUSY_TICKS or switches - known[child][1] >= _BUSY_SWITCHES
        for child, (ticks, switches) in children.items()
    )


def _patience(beat: Beat) -> float | None:
    """How long the rank may stand where it is without a sign of life; None: for ever."""
    inner = beat.frames[-_INNER:]
    if any(_is_in(frame, _OUTSIDE) for frame in inner):
        return None
    others = beat.others
    if beat.main is None or (others is not None and others.children is None):
        return LONG_SECONDS
    if inner and _sleeps(inner[-1]):
        # On purpose, most likely: until a service that said no is asked again.
        return LONG_SECONDS
    has_children = bool(others and others.children)
    if has_children and any(_is_in(frame, _WAIT_FOR_CHILD) for frame in inner):
        return LONG_SECONDS
    return STILL_SECONDS


def _sleeps(frame: Frame) -> bool:
    """Whether the line of the innermost frame calls ``time.sleep``, which has no frame of its own."""
    linecache.checkcache(frame.filename)
    return "sleep(" in linecache.getline(frame.filename, frame.line)


def _is_in(frame: Frame, parts: tuple[str, ...]) -> bool:
    name = frame.filename.replace("\\", "/")
    return any(part in name for part in parts)


def _inferred(beat: Beat, since: float) -> Wait | None:
    """A wait that Python sees only from outside: in the C++ part of a backward pass, or of torch.distributed."""
    if not beat.group_size or beat.group_size < 2 or not beat.frames:
        return None
    ours = [frame for frame in beat.frames if "ranksafe_agent" not in frame.filename]
    inner = ours[-1] if ours else beat.frames[-1]
    if _is_in(inner, ("/torch/autograd/graph.py", "/torch/autograd/__init__.py")):
        return Wait(BACKWARD, since)
    if _is_in(inner, ("/torch/distributed/checkpoint/",)):
        return None
    if _is_in(inner, ("/torch/distributed/", "/torch/nn/parallel/distributed.py")):
        return Wait(inner.function, since)
    return None


BACKWARD = "backward"
_INNER = 15
_OUTSIDE = (
    "/socket.py",
    "/ssl.py",
    "/http/client.py",
    "/urllib3/",
    "/requests/",
    "/httpx/",
    "/httpcore/",
    "/aiohttp/",
    "/huggingface_hub/",
    "/botocore/",
    "/s3fs/",
    "/gcsfs/",
    "/paramiko/",
    "/pdb.py",
    "/bdb.py",
    "/debugpy/",
    "/pydevd",
)
"""Networks and people take the time they take."""
_WAIT_FOR_CHILD = (
    "/subprocess.py",
    "/multiprocessing/",
    "/multiprocess/",
    "/concurrent/futures/",
    "/torch/utils/data/dataloader.py",
    "/torch/_inductor/",
    "/selectors.py",
)


def ranks_text(ranks: Iterable[int]) -> str:
    """``rank 1``, ``ranks 0, 2-7``; the same in both languages."""
    ordered = sorted(ranks)
    spans: list[list[int]] = []
    for rank in ordered:
        if spans and rank == spans[-1][-1] + 1:
            spans[-1].append(rank)
        else:
            spans.append([rank])
    text = ", ".join(
        str(span[0])
        if len(span) == 1
        else f"{span[0]}-{span[-1]}"
        if len(span) > 2
        else f"{span[0]}, {span[1]}"
        for span in spans
    )
    return f"rank{'s' if len(ordered) > 1 else ''} {text}"
