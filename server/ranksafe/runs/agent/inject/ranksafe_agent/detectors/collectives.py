"""Which collectives each rank called, in which order and from where, in a ring that survives a kill.

The ring is a file mapped into memory, so noting a call costs microseconds and no system call, and what was noted is
there however the process ends. Names (of groups, of calls, of places in the source) are numbered and go to the journal
once. Only Python's calls are seen; of the collectives that DistributedDataParallel makes in C++ where they begin
(``wrapped_models``). What a thread is in at the moment, sends and receives too, is kept in
``ranksafe_agent.waiting`` for the heartbeat.

`RECORD` and the file's name are read by ``ranksafe.runs.explain.collective_order``.
"""

from __future__ import annotations

import functools
import mmap
import os
import struct
import sys
import threading
import time
import weakref
from _thread import get_ident
from types import FrameType
from typing import Any, Callable

from .. import trail, waiting
from ..descriptors import mapped_file
from .in_flight import InFlight
from .watch import Watch, is_user_file, stack, user_frame

RECORD = struct.Struct("<QQIIId")
"""Number of the call in this rank, its number in its group, group, call and place, time. Numbers count from 1."""
SLOTS = 4096
_MOST_NAMES = 2000
_SAME_SHAPE = frozenset(
    {
        "all_reduce",
        "broadcast",
        "reduce",
        "all_gather_into_tensor",
        "all_gather_single",
        "reduce_scatter_tensor",
        "reduce_scatter_single",
    }
)
_ANY_SHAPE = frozenset(
    {
        "all_reduce_coalesced",
        "all_gather",
        "all_gather_coalesced",
        "all_gather_object",
        "gather",
        "gather_object",
        "scatter",
        "scatter_object_list",
        "broadcast_object_list",
        "reduce_scatter",
        "all_to_all",
        "all_to_all_single",
        "barrier",
        "monitored_barrier",
    }
)
_ROOTS = {"broadcast": "src", "reduce": "dst"}

Listener = Callable[[str, Any], Any]
"""Called with a collective's name and its first tensor before it runs; may return what is called after it."""
listeners: list[Listener] = []


def hooks(calls: Calls) -> dict[str, Callable[[Any], None]]:
    """What to do after which import."""
    return {
        "torch.distributed.distributed_c10d": functools.partial(_hook, calls),
        "torch.distributed.algorithms.join": _hook_join,
    }


def _hook_join(module: Any) -> None:
    here, kind = waiting.here, module.Join
    enter, leave = kind.__enter__, kind.__exit__

    @functools.wraps(enter)
    def entered(self: Any) -> Any:
        here.joins += 1
        return enter(self)

    @functools.wraps(leave)
    def left(self: Any, *error: Any) -> Any:
        try:
            return leave(self, *error)
        finally:
            here.joins -= 1

    kind.__enter__, kind.__exit__ = entered, left


def _hook(calls: Calls, module: Any) -> None:
    from . import transfers

    watch, calls.module = calls.watch, module
    for name in sorted(_SAME_SHAPE | _ANY_SHAPE):
        original = getattr(module, name, None)
        if callable(original):
            setattr(module, name, calls.watched(name, original))
    watch.attempt(transfers.hook, watch, module, calls.in_flight)


class Calls:
    """Runs before every collective of a training loop, where no cache is warm: each call it makes itself costs
    microseconds."""

    def __init__(self, watch: Watch, in_flight: InFlight | None) -> None:
        self.watch = watch
        self.in_flight = in_flight
        self.module: Any = None
        """``torch.distributed.distributed_c10d``, once it is imported."""
        self.lock = threading.Lock()
        self.ring: mmap.mmap | None = None
        self.calls = 0
        self.of_group = waiting.here.counts
        self.groups: dict[Any, int] = {}
        self.names: dict[Any, int] = {}
        self.known: dict[Any, tuple[int, str]] = {}
        """Calls by name or by name, dtype and size: number and text."""
        self.places: dict[Any, int] = {}
        self.near: dict[tuple[int, int], int] = {}
        """Places in the user's code by the id of the code and the instruction."""
        self.kept: list[Any] = []
        """Code whose ids are known, so that no other gets them."""
        self.last_group: Callable[[], Any] = _no_group
        self.last_number = 0

    def watched(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """``original``, noted before it runs; what it calls itself is part of it."""
        sized = name in _SAME_SHAPE
        here, note, watch, in_flight = waiting.here, self.note, self.watch, self.in_flight
        now = here.now

        @functools.wraps(original)
        def collective(*arguments: Any, **keywords: Any) -> Any:
            thread = get_ident()
            if thread in now or not here.is_rank or here.joins:
                return original(*arguments, **keywords)
            after: Any = ()
            tensor: Any = None
            now[thread] = (time.time(), name, None, None, ())
            here.entered += 1
            try:
                tensor = arguments[0] if arguments else next(iter(keywords.values()), None)
                note(name, sized, tensor, arguments, keywords, thread)
                if in_flight is not None and not keywords.get("async_op"):
                    in_flight.met_others()
                if listeners:
                    after = watch.attempt(_heard, name, tensor) or ()
            except Exception as error:
                watch.problem(f"detector {name}: {error!r}")
            try:
                result = original(*arguments, **keywords)
                if result is not None:
                    here.issued(result)
                    if in_flight is not None:
                        root = watch.attempt(self._root, name, arguments, keywords)
                        watch.attempt(in_flight.begin, result, name, tensor, root)
            finally:
                now.pop(thread, None)
                here.left += 1
            for action in after:
                watch.attempt(action, result)
            return result

        return collective

    def _root(self, name: str, arguments: Any, keywords: Any) -> int | None:
        """The global rank that a collective sends from or to."""
        from .transfers import peer

        word = _ROOTS.get(name)
        if word is None:
            return None
        return next(iter(peer(self.module, word, arguments, keywords)), None)

    def note(
        self, name: str, sized: bool, tensor: Any, arguments: Any, keywords: Any, thread: int
    ) -> None:
        """Write the call into the ring, and what this thread waits in."""
        group = self._group(arguments, keywords)
        if group is None:
            return
        key: Any = name
        if sized and hasattr(tensor, "dtype"):
            key = (name, tensor.dtype, tensor.numel())
        self.write(group, key, sys._getframe(2), thread)

    def note_of_group(self, group: Any, name: str, frame: FrameType, thread: int) -> None:
        """The same for what has no arguments: a call that ``frame`` makes."""
        self.write(self._number_of(group), name, frame, thread)

    def write(self, group: int, key: Any, frame: FrameType, thread: int) -> None:
        """Write a call of the group with this number."""
        # Not by the code object itself: CPython hashes all of it, each time.
        place = self.near.get((id(frame.f_code), frame.f_lasti))
        with self.lock:
            call, text = self.known.get(key) or self._new_call(key)
            if place is None:
                place = self._new_place(frame, thread)
            if self.ring is None:
                self.ring = self._open()
            start = self.calls % SLOTS * RECORD.size
            self.calls += 1
            count = self.of_group[group] = self.of_group.get(group, 0) + 1
            since = time.time()
            RECORD.pack_into(self.ring, start, self.calls, count, group, call, place, since)
        waiting.here.now[thread] = (since, text, group, count, None)
        trail.here.call(group, count)

    def _new_place(self, frame: FrameType, thread: int) -> int:
        place = self._place(None if thread == get_ident() else frame)
        code = frame.f_code
        if is_user_file(code.co_filename) and len(self.kept) < _MOST_NAMES:
            self.kept.append(code)
            self.near[id(code), frame.f_lasti] = place
        return place

    def _new_call(self, key: Any) -> tuple[int, str]:
        text = key if isinstance(key, str) else f"{key[0]} {str(key[1])[6:]}[{key[2]}]"
        number = self._number("call", self.names, text, text)
        if number:
            self.known[key] = number, text
        return number, text

    def _open(self) -> mmap.mmap:
        path = os.path.join(self.watch.directory, f"rank{self.watch.journal.rank}.collectives")
        try:
            return mapped_file(path, SLOTS * RECORD.size)
        except OSError:  # the collectives themselves go on
            return mmap.mmap(-1, SLOTS * RECORD.size)

    def _group(self, arguments: Any, keywords: Any) -> int | None:
        """The group's number; None where there is none, or this rank is no member and the call does nothing."""
        kind = self.module.ProcessGroup
        group = keywords.get("group") if keywords else None
        if group is None and len(arguments) > 1:
            group = next((each for each in arguments if isinstance(each, kind)), None)
        if group is None:
            group = self.module.group.WORLD
        if group is self.last_group() and group is not None:
            return self.last_number
        if not isinstance(group, kind):
            return None
        number = self._number_of(group)
        self.last_group, self.last_number = weakref.ref(group), number
        return number

    def _number_of(self, group: Any) -> int:
        key = group.group_name
        known = self.groups.get(key)
        if known is not None:
            return known
        ranks = [int(rank) for rank in self.module.get_process_group_ranks(group)]
        with self.lock:
            described = {"name": str(key), "ranks": ranks}
            number = self._number("group", self.groups, key, described)
            waiting.here.groups[number] = described
            return number

    def _place(self, of_other_thread: FrameType | None) -> int:
        frame = user_frame(of_other_thread)
        if frame is None:
            key: Any = "no user code"
        else:
            key = (frame.f_code, frame.f_lineno)
        known = self.places.get(key)
        if known is not None:
            return known
        frames = [each for each in stack(of_other_thread) if is_user_file(each["file"])]
        return self._number("place", self.places, key, frames)

    def _number(self, table: str, known: dict[Any, int], key: Any, value: Any) -> int:
        """The number of ``key``; 0 once there are too many."""
        number = known.get(key)
        if number is None:
            if len(known) >= _MOST_NAMES:
                return 0
            number = known[key] = len(known) + 1
            self.watch.journal.write("collective-name", table=table, number=number, value=value)
        return number


def _no_group() -> None:
    return None


def _heard(name: str, tensor: Any) -> list[Any]:
    """What listeners want to be called afterwards."""
    tensor = tensor if hasattr(tensor, "dtype") else None
    return [each for each in (hear(name, tensor) for hear in listeners) if each is not None]
