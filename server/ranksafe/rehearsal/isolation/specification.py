"""What ``enter`` is told, as a file: command lines can be read by every user of a machine."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

SPECIFICATION_FILE = "isolation.json"
SCRATCH_FOLDER = "isolation-scratch"
"""In the run's folder; holds what the script writes where memory cannot (Linux before 6.6)."""
ROOT_FOLDER = "isolation-root"
"""In the run's folder; always empty outside."""
NOT_ENTERED = 97
"""Exit status of ``enter`` where the isolation could not be set up; the command was not started."""


@dataclass(frozen=True, slots=True)
class Specification:
    """One rehearsal's isolation; sizes in bytes, paths absolute and free of links."""

    run_directory: str
    """Stays writable for real."""
    working_directory: str
    writable_folders: tuple[str, ...]
    """Folders where the script is likely to write: workspace, HOME, temporary files, caches, output."""
    host_names: tuple[str, ...]
    """Names that lead to the loopback address: of this machine, then of the simulated nodes."""
    namespaces: bool
    """False: only the bounds are watched."""
    disk_bytes: int
    """What the script may write."""
    shared_memory_bytes: int
    """Size of /dev/shm."""
    host_memory_bytes: int | None
    reads_network: bool = False
    """Whether a process outside reads from the network for the script."""
    texts: tuple[tuple[str, str], ...] = ()
    """What is written, in here, over files: their paths and new texts."""
    scratch_on_disk: bool | None = None
    """None: where memory cannot hold it."""

    def write(self, directory: Path) -> Path:
        """Write `SPECIFICATION_FILE` into ``directory`` and return its path. Raises OSError."""
        path = directory / SPECIFICATION_FILE
        path.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        return path


def read_specification(path: Path) -> Specification:
    """What `Specification.write` has written. Raises OSError, ValueError, TypeError."""
    data = json.loads(path.read_text(encoding="utf-8"))
    for name in ("writable_folders", "host_names"):
        data[name] = tuple(data[name])
    data["texts"] = tuple((path, text) for path, text in data["texts"])
    return Specification(**data)
