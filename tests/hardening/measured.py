"""Calls of ``ranksafe`` whose memory and work are measured, and bounded should the bound of the product fail."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
from _pytest.mark import ParameterSet

ROOT = Path(__file__).parents[2]
MIB = 1024 * 1024


def sampled(names: Iterable[str], sample: Collection[str]) -> list[ParameterSet]:
    """Parameters of a test: those of the sample for `make test`, all for `make harden`."""
    return [pytest.param(name, marks=() if name in sample else pytest.mark.long) for name in names]


_MOST_MEMORY = 2048 * MIB
"""Of address space: an attack that works must not take the machine along."""
_MOST_WORK = 20
"""Seconds of CPU after which a call is ended; no test depends on how many it takes."""


@dataclass(frozen=True, slots=True)
class Measured:
    """How a call ended and what it took."""

    status: int
    out: str
    error: str
    peak: int
    """Bytes of memory at most."""
    work: float
    """Seconds of CPU: to be compared with those of another call, never with a number."""


def environment(home: Path, **more: str) -> dict[str, str]:
    """A user without files."""
    paths = [str(ROOT / "server"), str(ROOT / "rules")]
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
        **more,
    }


def ranksafe(*words: str, folder: Path, given: bytes = b"", **more: str) -> Measured:
    """Call ``ranksafe`` in a folder."""
    return python("-m", "ranksafe", *words, folder=folder, given=given, **more)


def python(*words: str, folder: Path, given: bytes = b"", **more: str) -> Measured:
    """Call Python, with ranksafe to be imported, in a folder."""
    home = folder.parent / "home"
    with _files(given) as (standard_input, out, error):
        child = subprocess.Popen(
            [sys.executable, *words],
            cwd=folder,
            env=environment(home, **more),
            stdin=standard_input,
            stdout=out,
            stderr=error,
            preexec_fn=_bounded,
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        error.seek(0)
        return Measured(
            child.returncode,
            out.read().decode("utf-8", "replace"),
            error.read().decode("utf-8", "replace"),
            used.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
            used.ru_utime + used.ru_stime,
        )


@contextmanager
def _files(given: bytes) -> Iterator[tuple[IO[bytes], IO[bytes], IO[bytes]]]:
    with (
        tempfile.TemporaryFile() as standard_input,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as error,
    ):
        standard_input.write(given)
        standard_input.seek(0)
        yield standard_input, out, error


def _bounded() -> None:
    if sys.platform != "darwin":  # which takes no notice of it
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_WORK, _MOST_WORK))
