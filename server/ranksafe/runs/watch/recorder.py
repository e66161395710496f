"""What torch's flight recorder tells of ranks whose collectives run on their devices, after the call has returned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranksafe.runs.watch.beat import Wait
from ranksafe.runs.watch.stacks import Look

_LEAST_SECONDS = 4.0
_DEFAULT = "default_pg"
_PREFIX = "recorder "
"""Of the groups' names: the recorder counts C++ calls, too, so its numbers are not those of Python's calls."""


def open_waits(looks: Mapping[int, Look]) -> dict[int, tuple[Wait | None, dict[str, int]]]:
    """For each rank the oldest collective that was begun and not finished for some seconds, and how many it began in
    each group.

    An entry is finished when its ``state`` is ``completed`` or it is ``retired`` (torch 2.13.0 ``FlightRecorder.hpp``;
    gloo's entries keep the state ``scheduled`` and are only retired).
    """
    members: dict[str, set[int]] = {}
    for rank, look in looks.items():
        for entry in look.recorder or ():
            everybody = (entry.get("process_group") or [""])[-1] == _DEFAULT
            members.setdefault(_group(entry), set()).update(looks if everybody else {rank})
    return {rank: _of_rank(look, members) for rank, look in looks.items()}


def _of_rank(look: Look, members: Mapping[str, set[int]]) -> tuple[Wait | None, dict[str, int]]:
    counts: dict[str, int] = {}
    oldest: Wait | None = None
    for entry in look.recorder or ():
        if entry.get("is_p2p"):
            continue
        group, number = _group(entry), int(entry.get("collective_seq_id") or 0)
        counts[group] = max(counts.get(group, 0), number)
        began = int(entry.get("time_created_ns") or 0) / 1e9
        is_open = entry.get("state") != "completed" and not entry.get("retired")
        if is_open and look.time - began >= _LEAST_SECONDS and oldest is None:
            call = str(entry.get("profiling_name") or "collective").rpartition(":")[2]
            oldest = Wait(call, began, group, tuple(sorted(members[group])), number)
    return oldest, counts


def _group(entry: Mapping[str, Any]) -> str:
    told = entry.get("process_group") or ["?"]
    return _PREFIX + str(told[0])
