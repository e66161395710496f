"""The supervisor by itself: its lease, and what it does when its folder or it itself is taken away."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ranksafe.runs import supervisor

_SUPERVISE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from supervisor import Supervisor

sys.exit(Supervisor(json.loads(sys.argv[2]), None).run())
"""
_PATIENCE_SECONDS = 60.0


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


@pytest.fixture
def supervised(directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A supervisor of a program that does nothing for ten minutes, with a file as its lease."""
    specification = {
        "command": [sys.executable, "-c", "import time; time.sleep(600)"],
        "directory": str(directory),
        "environment": {},
        "working_directory": str(directory.parent),
        "grace_seconds": 1.0,
        "lease_file": str(directory / "lease.json"),
        "cancel_file": str(directory / "cancel"),
    }
    here = str(Path(supervisor.__file__).parent)
    process = subprocess.Popen(
        [sys.executable, "-c", _SUPERVISE, here, json.dumps(specification)],
        stdin=subprocess.DEVNULL,
    )
    yield process
    (directory / "cancel").touch()
    process.wait(_PATIENCE_SECONDS)


def _renew(directory: Path, seconds: float, renewed: float) -> None:
    (directory / "lease.new").write_text(json.dumps({"renewed": renewed, "seconds": seconds}))
    (directory / "lease.new").replace(directory / "lease.json")


def _report(directory: Path) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads((directory / "supervisor.json").read_text())
    except (OSError, ValueError):
        return {}
    return value


def _await_status(directory: Path, status: str) -> None:
    end = time.monotonic() + _PATIENCE_SECONDS
    while _report(directory).get("status") != status:
        assert time.monotonic() < end, _report(directory)
        time.sleep(0.05)


def test_a_clock_that_is_put_right_ends_no_run(
    directory: Path, supervised: subprocess.Popen[bytes]
) -> None:
    _renew(directory, 500.0, renewed=time.time())
    _await_status(directory, "running")
    # As if the host had been a day behind: by its clock every lease of before is over now.
    _renew(directory, 500.0, renewed=time.time() - 86_400)
    time.sleep(3.0)
    assert supervised.poll() is None
    assert _report(directory)["status"] == "running"


def test_a_lease_that_nobody_renews_ends_the_run(
    directory: Path, supervised: subprocess.Popen[bytes]
) -> None:
    # As if the host had been a day ahead.
    _renew(directory, 2.0, renewed=time.time() + 86_400)
    _await_status(directory, "cancelled")
    assert _report(directory)["lease_over"] is True
    assert supervised.wait(_PATIENCE_SECONDS) == 0


def test_a_terminal_has_a_size_and_nobody_types_there(directory: Path) -> None:
    asks = """
import os, sys
print(os.get_terminal_size(0), repr(sys.stdin.read()))
try:
    input()
except EOFError:
    print("at the end")
"""
    specification = {
        "command": [sys.executable, "-c", asks],
        "directory": str(directory),
        "environment": {},
        "working_directory": str(directory.parent),
        "grace_seconds": 1.0,
        "terminal": True,
    }
    here = str(Path(supervisor.__file__).parent)
    words = [sys.executable, "-c", _SUPERVISE, here, json.dumps(specification)]
    subprocess.run(words, stdin=subprocess.DEVNULL, timeout=_PATIENCE_SECONDS, check=True)
    said = (directory / "launcher.stdout").read_text().splitlines()
    assert said == ["os.terminal_size(columns=80, lines=24) ''", "at the end"]
