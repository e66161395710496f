"""What the name of a target says: this machine, simulated GPUs on it, or another one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

REHEARSAL_GPUS: Final = 2
"""Simulated where the user named no number: the fewest on which anything can go wrong."""
_TARGET: Final = re.compile(r"local|simulated:[1-9]\d*|(?:ssh|slurm):[A-Za-z0-9][\w.@-]*")


def is_target(name: str) -> bool:
    """Whether this names a target at all: a target never carries a command line."""
    return _TARGET.fullmatch(name) is not None


def is_rehearsal(target: str) -> bool:
    """Whether a target is made of simulated GPUs."""
    return target.startswith("simulated:")


def simulated_gpus(target: str) -> int:
    """How many GPUs a target of that kind has."""
    return int(target.rpartition(":")[2])


def is_here(target: str) -> bool:
    """Whether a target is this machine."""
    return target == "local" or is_rehearsal(target)


def as_count(value: object) -> int | None:
    """``value`` if it is a number of GPUs, ranks or nodes."""
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        return None
    return value


def rehearsal_target(remembered: str, given: Mapping[str, Any]) -> str:
    """Where a rehearsal happens: what the caller names, else what is remembered for the script, else two GPUs."""
    count = as_count(given.get("gpus"))
    if count is None and is_rehearsal(remembered):
        return remembered
    return f"simulated:{count or REHEARSAL_GPUS}"
