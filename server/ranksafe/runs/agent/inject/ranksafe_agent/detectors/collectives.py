"""Which collectives each rank called, in which order and from where, in a ring that survives a kill.

The ring is a file mapped into memory, so noting a call costs microseconds and no system call, and what was noted is
there however the process ends. Names (of groups, of calls, of places in the source) are numbered and go to the journal
once. Only Python's calls are seen: the collectives that DistributedDataParallel makes in C++ are not.

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
from typing import Any, Callable

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

Listener = Callable[[str, Any], Any]
"""Called with a collective's name and its first tensor before it runs; may return what is called after it."""
listeners: list[Listener] = []


def hooks(watch: Watch) -> dict[str, Callable[[Any], None]]:
    """What to do after which import."""
    return {"torch.distributed.distributed_c10d": functools.partial(_hook, watch)}


def _hook(watch: Watch, module: Any) -> None:
    calls = _Calls(watch, module)
    for name in sorted(_SAME_SHAPE | _ANY_SHAPE):
        original = getattr(module, name, None)
        if callable(original):
            setattr(module, name, calls.watched(name, original))


class _Calls:
    def __init__(self, watch: Watch, module: Any) -> None:
        self.watch = watch
        self.module = module
        self.depth = threading.local()
        self.lock = threading.Lock()
        self.ring: mmap.mmap | None = None
        self.calls = 0
        self.of_group: dict[int, int] = {}
        self.groups: dict[Any, int] = {}
        self.names: dict[Any, int] = {}
        self.places: dict[Any, int] = {}

    def watched(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """``original``, noted before it runs; what it calls itself is part of it."""
        sized = name in _SAME_SHAPE
        depth = self.depth

        @functools.wraps(original)
        def collective(*arguments: Any, **keywords: Any) -> Any:
            if getattr(depth, "inside", False):
                return original(*arguments, **keywords)
            after = self.watch.attempt(self.note, name, sized, arguments, keywords)
            depth.inside = True
            try:
                result = original(*arguments, **keywords)
            finally:
                depth.inside = False
            for action in after or ():
                self.watch.attempt(action, result)
            return result

        return collective

    def note(self, name: str, sized: bool, arguments: Any, keywords: Any) -> list[Any]:
        """Write the call into the ring; returns what listeners want to be called afterwards."""
        group = self._group(arguments, keywords)
        if group is None:
            return []
        tensor = arguments[0] if arguments else next(iter(keywords.values()), None)
        if not hasattr(tensor, "dtype"):
            tensor = None
        call = name
        if sized and tensor is not None:
            call = f"{name} {str(tensor.dtype)[6:]}[{tensor.numel()}]"
        with self.lock:
            self._write(group, self._number("call", self.names, call, call), self._place())
        return [each for each in (hear(name, tensor) for hear in listeners) if each is not None]

    def _write(self, group: int, call: int, place: int) -> None:
        if self.ring is None:
            self.ring = self._open()
        self.calls += 1
        count = self.of_group[group] = self.of_group.get(group, 0) + 1
        start = (self.calls - 1) % SLOTS * RECORD.size
        self.ring[start : start + RECORD.size] = RECORD.pack(
            self.calls, count, group, call, place, time.time()
        )

    def _open(self) -> mmap.mmap:
        path = os.path.join(self.watch.directory, f"rank{self.watch.journal.rank}.collectives")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(descriptor, SLOTS * RECORD.size)
            return mmap.mmap(descriptor, SLOTS * RECORD.size)
        finally:
            os.close(descriptor)

    def _group(self, arguments: Any, keywords: Any) -> int | None:
        """The group's number; None where there is none, or this rank is no member and the call does nothing."""
        kind = self.module.ProcessGroup
        group = keywords.get("group")
        if group is None:
            group = next((each for each in arguments if isinstance(each, kind)), None)
        if group is None:
            group = self.module.group.WORLD
        if not isinstance(group, kind):
            return None
        key = group.group_name
        known = self.groups.get(key)
        if known is not None:
            return known
        ranks = [int(rank) for rank in self.module.get_process_group_ranks(group)]
        with self.lock:
            return self._number("group", self.groups, key, {"name": str(key), "ranks": ranks})

    def _place(self) -> int:
        frame = user_frame()
        if frame is None:
            frame = sys._getframe(1)  # autograd's own threads have no frame of the user's
            key: Any = "no user code"
        else:
            key = (frame.f_code, frame.f_lineno)
        known = self.places.get(key)
        if known is not None:
            return known
        frames = [each for each in stack() if is_user_file(each["file"])]
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
