"""A closer look at this rank, when somebody asks: the stacks of all threads, and what torch's flight recorder holds.

Asked for through the file ``look`` of the run's folder, ``{"id": ..., "recorder": bool}``, and answered in
``rankN.look`` by the heartbeat's thread: no signal disturbs the script, and a main thread that is stuck in C++ cannot
keep it from answering.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any, Callable

from .waiting import here

_MOST_ENTRIES = 200
_KEPT = (
    "process_group",
    "collective_seq_id",
    "p2p_seq_id",
    "is_p2p",
    "profiling_name",
    "input_sizes",
    "state",
    "retired",
    "time_created_ns",
)


class Looks:
    """Answers requests of one run's folder."""

    def __init__(self, directory: str, rank: int, frames: Callable[[Any], Any]) -> None:
        self.request = os.path.join(directory, "look")
        self.path = os.path.join(directory, f"rank{rank}.look")
        self.frames = frames
        self.seen = 0

    def answer(self, main: int | None) -> None:
        """Write the answer if there is a new request."""
        try:
            stamp = os.stat(self.request).st_mtime_ns
        except OSError:
            return
        if stamp == self.seen:
            return
        self.seen = stamp
        with open(self.request, encoding="utf-8") as file:
            asked = json.load(file)
        found = {
            "id": asked["id"],
            "time": time.time(),
            "threads": self._threads(main),
            "collectives": here.as_data(main),
            "recorder": None,
        }
        self._write(found)
        if asked.get("recorder"):
            # Last: with NCCL the recorder asks CUDA for the state of each entry, and that may take its time.
            found["recorder"] = _recorded()
            self._write(found)

    def _threads(self, main: int | None) -> list[dict[str, Any]]:
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        frames = sys._current_frames()
        frames.pop(threading.get_ident(), None)
        return [
            {
                "thread": ident,
                "name": names.get(ident, ""),
                "main": ident == main,
                "frames": self.frames(frame),
            }
            for ident, frame in sorted(frames.items(), key=lambda item: item[0] != main)
        ]

    def _write(self, found: dict[str, Any]) -> None:
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump(found, file)
        os.replace(self.path + ".new", self.path)


def _recorded() -> list[dict[str, Any]] | None:
    """The latest entries of torch's flight recorder, None without one.

    torch 2.13.0 has ``_dump_fr_trace_json`` (gloo and others) and, built with NCCL, ``_dump_nccl_trace_json`` in
    ``torch._C._distributed_c10d``; both record 2000 calls unless TORCH_FR_BUFFER_SIZE (TORCH_NCCL_TRACE_BUFFER_SIZE
    before) says otherwise (``FlightRecorder.hpp``). Older versions only pickle, which is not read here.
    """
    module = sys.modules.get("torch._C._distributed_c10d")
    found: list[dict[str, Any]] | None = None
    for name in ("_dump_nccl_trace_json", "_dump_fr_trace_json"):
        dump = getattr(module, name, None)
        if dump is None:
            continue
        try:
            entries = json.loads(dump()).get("entries") or []
        except Exception:
            continue
        kept = [{key: entry.get(key) for key in _KEPT} for entry in entries[-_MOST_ENTRIES:]]
        found = (found or []) + kept
    return found
