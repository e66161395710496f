"""The template processes of this user: found by what they have imported, started, counted, ended.

Each has a folder below ``ranksafe/warm`` in the user's cache, named by everything that its imports may depend on. It
decides by itself when to end; here it is only told to.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranksafe.rehearsal.isolation import warm
from ranksafe.runs.directory import cache_directory
from ranksafe.runs.simulated_devices import INJECT_DIRECTORY

IDLE_SECONDS = 600.0
"""How long a template waits for the next rehearsal."""
_MOST = 2
"""At a time; each holds the memory of its libraries."""
_REFUSED_SECONDS = 86_400.0
"""How long it is not tried again to start one that could not be forked (a library that starts threads)."""
_PROGRAM = INJECT_DIRECTORY / "ranksafe_rehearsal" / "warm" / "start.py"


@dataclass(frozen=True, slots=True)
class LivingTemplate:
    """One that waits."""

    process: int
    imports: tuple[str, ...]
    memory_bytes: int
    """Most of it is shared with what is forked from it."""
    idle_seconds: float


def folder_of(key: str) -> Path:
    """Where the template with that key lives, if it does."""
    return cache_directory() / "warm" / key


def is_alive(folder: Path) -> bool:
    """Whether somebody can be asked there."""
    return _asked(folder, "status") is not None


def living_templates() -> list[LivingTemplate]:
    """All of this user's that answer."""
    found = []
    for folder in _folders():
        told = _asked(folder, "status")
        if told is not None:
            found.append(
                LivingTemplate(
                    int(told["process"]),
                    tuple(str(each) for each in told["imports"]),
                    int(told["memory_bytes"]),
                    float(told["idle_seconds"]),
                )
            )
    return found


def end_templates() -> None:
    """Tell all of this user's to end; one that still imports finds its folder gone when it is ready, and ends then."""
    for folder in _folders():
        _asked(folder, "end")
        shutil.rmtree(folder, ignore_errors=True)


_leases: list[subprocess.Popen[bytes]] = []
"""Templates that end with this process, because it holds the other end of their standard input."""


def start_template(
    folder: Path,
    python: Path,
    environment: Mapping[str, str],
    told: Mapping[str, object],
    *,
    outlives: bool,
) -> None:
    """Start one, unless that was found to be of no use; returns at once. Never raises: a cold start does, too.

    ``outlives``: whether it may go on when this process ends.
    """
    with contextlib.suppress(OSError):
        _make_private(folder)
        if _was_refused(folder):
            return
        _make_room()
        process = subprocess.Popen(
            [str(python), "-u", str(_PROGRAM)],
            cwd="/",
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stdin is not None
        more = {"folder": str(folder), "idle_seconds": IDLE_SECONDS, "leased": not outlives}
        process.stdin.write(json.dumps({**told, **more}).encode() + b"\n")
        if outlives:
            process.stdin.close()
        else:
            process.stdin.flush()
            _leases[:] = [each for each in _leases if each.poll() is None] + [process]


def _make_private(folder: Path) -> None:
    for each in (cache_directory(), folder.parent, folder):
        each.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)


def _was_refused(folder: Path) -> bool:
    try:
        return time.time() - (folder / "refused").stat().st_mtime < _REFUSED_SECONDS
    except OSError:
        return False


def _make_room() -> None:
    """End those that were asked least lately, and remove what those of other days have left."""
    told = [(folder, _asked(folder, "status")) for folder in _folders()]
    for folder, answer in told:
        if answer is None and time.time() - folder.stat().st_mtime > _REFUSED_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
    alive = [(float(each["idle_seconds"]), folder) for folder, each in told if each]
    for _, folder in sorted(alive, reverse=True)[: max(0, len(alive) - _MOST + 1)]:
        _asked(folder, "end")


def _folders() -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from sorted((cache_directory() / "warm").iterdir())


def _asked(folder: Path, what: str) -> dict[str, Any] | None:
    """The answer; None where there is nobody, or no answer is due."""
    try:
        with contextlib.closing(warm.connect(str(folder))) as connection:
            warm.send(connection, {"ask": what})
            return warm.receive(connection) or None
    except (OSError, ValueError):
        return None
