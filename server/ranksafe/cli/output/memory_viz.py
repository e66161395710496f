"""A forecast's peak as a snapshot of torch's memory (``torch.cuda.memory._snapshot``, torch 2.4 to 2.13), for the tools
that read those: docs.pytorch.org/memory_viz and ``torch/cuda/_memory_viz.py``.

Sizes, purposes and lines are those of the forecast. It keeps neither addresses nor the order of what was taken, so
each device is one segment, filled by purpose.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any

from ranksafe.runs.fit import DeviceNeed, Forecast
from ranksafe.runs.model import Frame

_ADDRESS = 0x7F00_0000_0000
"""Where devices' memory begins, as on a 64-bit Linux: viewers only subtract."""
_POOL = (0, 0)
_PROTOCOL = 4


def snapshot(forecast: Forecast) -> bytes:
    """The pickled snapshot: plain lists, dictionaries, numbers and texts."""
    number = 1 + max(device.number for device in forecast.devices)
    traces: list[list[dict[str, Any]]] = [[] for _ in range(number)]
    segments = []
    for device in forecast.devices:
        blocks = list(_blocks(device))
        size = sum(block["size"] for block in blocks)
        held = sum(block["size"] for block in blocks if block["state"] == "active_allocated")
        segments.append(
            {
                "device": device.number,
                "address": _ADDRESS,
                "total_size": size,
                "stream": 0,
                "segment_type": "large",
                "segment_pool_id": _POOL,
                "allocated_size": held,
                "active_size": held,
                "requested_size": held,
                "frames": [],
                "blocks": blocks,
            }
        )
        traces[device.number] = [
            _event("segment_alloc", _ADDRESS, size, []),
            *(
                _event("alloc", block["address"], block["size"], block["frames"])
                for block in blocks
                if block["state"] == "active_allocated"
            ),
        ]
    whole = {"segments": segments, "device_traces": traces, "allocator_settings": {}}
    return pickle.dumps(whole, protocol=_PROTOCOL)


def _blocks(device: DeviceNeed) -> Iterator[dict[str, Any]]:
    """What was held, then the rest of what was reserved."""
    address = _ADDRESS
    for alike in device.peak.blocks:
        for _ in range(alike.count):
            yield _block("active_allocated", address, alike.size, _frames(alike.frames, alike.part))
            address += alike.size
    rest = device.peak.reserved - (address - _ADDRESS)
    if rest > 0:
        yield _block("inactive", address, rest, [])


def _block(state: str, address: int, size: int, frames: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "state": state,
        "address": address,
        "size": size,
        "requested_size": size,
        "frames": frames,
    }


def _event(action: str, address: int, size: int, frames: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "action": action,
        "addr": address,
        "size": size,
        "stream": 0,
        "pool_id": _POOL,
        "frames": frames,
    }


def _frames(frames: Sequence[Frame], part: str) -> list[dict[str, Any]]:
    """Innermost first, as torch has them; outermost what the block is for, by which flame graphs then group."""
    told = [
        {"filename": frame.filename, "line": frame.line, "name": frame.function}
        for frame in reversed(frames)
    ]
    return [*told, {"filename": "ranksafe", "line": 0, "name": part}]
