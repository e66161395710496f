"""One simulated device of a kind, and what a real one of that kind has told (``tests/gpu_check``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ranksafe.rehearsal.device_models import device_model, overhead

from .conftest import Rehearsed

_GPU_CHECK = Path(__file__).parents[1] / "gpu_check"
PROGRAMS = _GPU_CHECK / "programs"
SETTINGS_OF_TORCH_2_11 = {"TORCH_CUBLASLT_UNIFIED_WORKSPACE": "0"}
"""torch 2.12 changed the default of a setting that both have; 2.11 was measured."""


def measured(device: str, part: str) -> dict[str, Any]:
    """What a device with torch 2.11 told in a part of the check, by program."""
    file = _GPU_CHECK / "measured" / f"{device}_torch_2.11.jsonl"
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return {
        line["case"]: line["real"] for line in lines if line.get("part") == part and "case" in line
    }


def settings_of(key: str) -> dict[str, Any]:
    """What tells the processes of a rehearsal of one such device."""
    model = device_model(key)
    driver, context = overhead(model.memory_bytes)
    return {
        "devices": 1,
        "device_name": model.name,
        "capability": model.capability,
        "memory_bytes": model.memory_bytes,
        "driver_memory_bytes": driver,
        "context_memory_bytes": context,
    }


def last_line(done: Rehearsed) -> Any:
    """What a program that passed has printed last, read as JSON."""
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.lines[-1])
