"""How much of this machine's memory a rehearsal may have, and how much its processes hold."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_SHARE = 0.7
"""Of what is available. The rest is for everything else, and for what is taken between two looks."""
_LEAST = 512 << 20
_UNLIMITED = 1 << 60


def host_memory_bound() -> int:
    """Bytes that all processes of a rehearsal together may hold: a safe share of what is available now.

    Counts the limit of a container (cgroup 2 and 1). Where the system says nothing: 4 GiB.
    """
    available = _available()
    if available is None:
        return 4 << 30
    return max(int(min(available, _left_in_container()) * _SHARE), _LEAST)


def _available() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        facts = dict(line.split(":", 1) for line in lines if ":" in line)
        return int(facts["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return None


def _left_in_container() -> int:
    """The smallest rest among this process's groups; a folder that is not there limits nothing."""
    pairs = [("/sys/fs/cgroup", "memory.max", "memory.current")]
    pairs.append(("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"))
    left = _UNLIMITED
    for mounted, limit, usage in pairs:
        for folder in {Path(mounted), *(_own_groups(Path(mounted)))}:
            try:
                allowed = int((folder / limit).read_text())
                left = min(left, allowed - int((folder / usage).read_text()))
            except (OSError, ValueError):
                continue
    return max(left, 0)


def _own_groups(mounted: Path) -> Iterable[Path]:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        folder = mounted / line.split(":", 2)[2].lstrip("/")
        yield folder
        yield from (parent for parent in folder.parents if parent.is_relative_to(mounted))


def private_memory(processes: Iterable[int], exact: bool) -> int:
    """Bytes of memory that is no file's, held by ``processes``; those that have ended hold nothing.

    A quick look counts a page that forked processes share once for each of them; ``exact`` divides it by their number
    (``Pss_Anon``, Linux 5.10) and takes some milliseconds for each process.
    """
    return sum(_proportional(each) if exact else _resident(each) for each in processes)


def _resident(process: int) -> int:
    return _field(f"/proc/{process}/status", b"RssAnon:") or 0


def _proportional(process: int) -> int:
    found = _field(f"/proc/{process}/smaps_rollup", b"Pss_Anon:")
    return _resident(process) if found is None else found


def _field(path: str, name: bytes) -> int | None:
    try:
        for line in Path(path).read_bytes().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None
