"""What Linux tells of a process of this machine. The supervisor, which runs alone, reads the same for itself."""

from __future__ import annotations

from pathlib import Path


def status_fields(pid: int) -> list[str] | None:
    """The fields of ``/proc/PID/stat`` from the third, the state, on (proc(5)); None where there is no such process, or
    the system tells nothing."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()
