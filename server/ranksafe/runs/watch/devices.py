"""Memory and utilisation of the run's GPUs at the last sample (``ranksafe.runs.records.gpu_log``)."""

from __future__ import annotations

import os
from pathlib import Path

from ranksafe.runs.explain.evidence import parse_entry
from ranksafe.runs.records.gpu_log import FILE

_TAIL_BYTES = 16_384
_MIB_PER_GIB = 1024


def devices_in_use(directory: Path) -> list[str]:
    """``GPU 0: 12.3/79.6 GiB, 95 %`` for each device, the same in all languages; empty where there is no sample."""
    try:
        with (directory / FILE).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    sample = parse_entry(lines[-1]) if lines else {}
    return [_text(device) for device in sample.get("devices", ()) if isinstance(device, dict)]


def _text(device: dict[str, object]) -> str:
    used, total, busy = (device.get(key) for key in ("used_mib", "total_mib", "busy_percent"))
    parts = []
    if isinstance(used, int) and isinstance(total, int):
        parts.append(f"{used / _MIB_PER_GIB:.1f}/{total / _MIB_PER_GIB:.1f} GiB")
    if isinstance(busy, int):
        parts.append(f"{busy} %")
    return f"GPU {device.get('index')}: {', '.join(parts) or '?'}"
