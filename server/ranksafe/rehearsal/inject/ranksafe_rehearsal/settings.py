"""What this process was told: the JSON file that ``ranksafe.rehearsal.settings.ProcessSettings`` was written to."""

from __future__ import annotations

import json
import os
from typing import Any

VARIABLE = "RANKSAFE_REHEARSAL"
NODE_VARIABLE = "RANKSAFE_REHEARSAL_NODE"
COMPUTED_BYTES = 1 << 20
"""Smaller tensors have values in a forecast."""


class Native:
    """Where the compiled parts are: absolute paths."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.stand_ins: tuple[str, ...] = tuple(data.get("stand_ins") or ())
        self.devices: str = data["devices"]
        self.nccl_module: str = data.get("nccl_module") or ""


class Settings:
    """The fields of ``ProcessSettings``, by the same names."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.run_directory: str = data["run_directory"]
        self.script: str = data.get("script", "")
        self.agent_directory: str = data.get("agent_directory", "")
        self.devices: int = int(data["devices"])
        self.nodes: int = int(data.get("nodes", 1))
        self.device_name: str = data["device_name"]
        major, minor = data["capability"]
        self.capability: tuple[int, int] = (int(major), int(minor))
        self.multi_processor_count: int = int(data["multi_processor_count"])
        self.memory_bytes: int = int(data["memory_bytes"])
        self.driver_memory_bytes: int = int(data.get("driver_memory_bytes", 0))
        self.context_memory_bytes: int = int(data.get("context_memory_bytes", 0))
        host_memory = data.get("host_memory_bytes")
        self.host_memory_bytes: int | None = None if host_memory is None else int(host_memory)
        self.shrink: str = data.get("shrink", "off")
        self.short_epochs: bool = bool(data.get("short_epochs"))
        self.forecast: bool = bool(data.get("forecast"))
        self.unbounded: bool = bool(data.get("unbounded"))
        self.stands_for: int = int(data.get("stands_for", 1))
        self.every_block: bool = bool(data.get("every_block"))
        self.offline: bool = bool(data.get("offline"))
        self.reads_network: bool = bool(data.get("reads_network"))
        self.native = Native(data["native"])

    @property
    def node(self) -> int:
        """Which simulated node this process belongs to, from 0."""
        text = os.environ.get(NODE_VARIABLE, "")
        return int(text) if text.isdigit() else 0


_current: Settings | None = None


def current() -> Settings | None:
    """The settings of this process; None outside a rehearsal or where the file cannot be read."""
    global _current
    path = os.environ.get(VARIABLE)
    if _current is None and path:
        try:
            _current = Settings(_read(path))
        except (OSError, ValueError, KeyError, TypeError):
            return None
    return _current


def read_again() -> None:
    """Take the settings of the file that is named now; everybody who holds them sees it. Raises OSError, ValueError."""
    chosen = current()
    if chosen is not None:
        Settings.__init__(chosen, _read(os.environ[VARIABLE]))


def _read(path: str) -> Any:
    with open(path, encoding="utf-8") as file:
        return json.load(file)
