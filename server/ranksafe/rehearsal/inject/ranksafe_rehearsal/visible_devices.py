"""Which of the node's simulated devices this process sees: ``CUDA_VISIBLE_DEVICES`` as the CUDA runtime reads it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence

VARIABLE = "CUDA_VISIBLE_DEVICES"


def device_uuid(node: int, device: int) -> uuid.UUID:
    """The same device has the same identity in every process and in every rehearsal."""
    return uuid.uuid5(uuid.NAMESPACE_DNS, f"gpu-{device}.node-{node}.simulated")


def visible(devices: int, node: int) -> list[int]:
    """The node's devices that are visible now, in their new order."""
    return chosen(os.environ.get(VARIABLE), [device_uuid(node, index) for index in range(devices)])


def chosen(text: str | None, uuids: Sequence[uuid.UUID]) -> list[int]:
    """Positions named by ``CUDA_VISIBLE_DEVICES``.

    The list ends at the first entry that names no device, and names nothing if a device comes twice (CUDA C++
    Programming Guide, "CUDA Environment Variables"; torch 2.13 ``_parse_visible_devices`` reads it the same way).
    """
    if text is None:
        return list(range(len(uuids)))
    found: list[int] = []
    for entry in text.split(","):
        position = _position(entry.strip(), uuids)
        if position is None:
            break
        if position in found:
            return []
        found.append(position)
    return found


def _position(entry: str, uuids: Sequence[uuid.UUID]) -> int | None:
    if entry.startswith("GPU-"):
        matches = [i for i, one in enumerate(uuids) if f"GPU-{one}".startswith(entry)]
        return matches[0] if len(matches) == 1 else None
    digits = entry[:1] if entry[:1] in "+-" else ""
    for character in entry[len(digits) :]:
        if not character.isdigit():
            break
        digits += character
    try:
        number = int(digits)
    except ValueError:
        return None
    return number if 0 <= number < len(uuids) else None
