"""A rehearsal that outgrows the machine ends, and its folder says which bound it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from ranksafe.rehearsal.isolation import EVENTS_FILE, host_memory_bound, plan_isolation
from ranksafe.rehearsal.isolation.memory import private_memory
from ranksafe.rehearsal.isolation.specification import SPECIFICATION_FILE, read_specification
from ranksafe.rehearsal.settings import Isolation

from .conftest import needs_isolation

SCRIPTS = Path(__file__).parent / "isolation_scripts"
MEBIBYTE = 1 << 20

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="bounds are watched on Linux only"
)


class Bounded:
    """Runs commands with bounds and reads what was said of them."""

    def __init__(self, folder: Path, choice: Isolation) -> None:
        self.folder = folder
        self.choice = choice
        self.run_directory = folder / "run"
        self.run_directory.mkdir()

    def run(
        self,
        command: Sequence[str],
        memory: int = 2048 * MEBIBYTE,
        disk: int = 32 * MEBIBYTE,
        on_disk: bool | None = None,
    ) -> subprocess.CompletedProcess[str]:
        plan = plan_isolation(
            self.choice,
            run_directory=self.run_directory,
            working_directory=self.folder,
            environment=os.environ,
            host_memory_bytes=memory,
            disk_bytes=disk,
        )
        path = self.run_directory / SPECIFICATION_FILE
        replace(read_specification(path), scratch_on_disk=on_disk).write(self.run_directory)
        return subprocess.run(
            plan.wrap(command),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @property
    def limits(self) -> list[tuple[str, str]]:
        lines = (self.run_directory / EVENTS_FILE).read_text(encoding="utf-8").splitlines()
        events = [event for event in map(json.loads, lines) if event["event"] == "limit"]
        assert all(event["message"]["en"] and event["message"]["zh_cn"] for event in events)
        return [(event["kind"], event["what"]) for event in events]


@pytest.fixture(params=[Isolation.REQUIRED, Isolation.OFF], ids=["isolated", "not-isolated"])
def bounded(request: pytest.FixtureRequest, tmp_path: Path) -> Bounded:
    if request.param is Isolation.REQUIRED:
        return isolated_in(tmp_path)
    return Bounded(tmp_path, request.param)


@pytest.fixture
def isolated(tmp_path: Path) -> Bounded:
    return isolated_in(tmp_path)


def isolated_in(folder: Path) -> Bounded:
    needs_isolation()
    return Bounded(folder, Isolation.REQUIRED)


def hold(*arguments: object) -> list[str]:
    """A program that holds so many MiB, in so many processes, shared by all or each its own."""
    return [sys.executable, "-I", str(SCRIPTS / "holds_memory.py"), *map(str, arguments)]


def test_memory_of_several_processes_is_added_up(bounded: Bounded) -> None:
    ended = bounded.run(hold(80, 3, "own"), memory=160 * MEBIBYTE)
    assert ended.returncode == -9
    assert [kind for kind, _ in bounded.limits] == ["host-memory"]
    assert "held it" not in ended.stdout


def test_shared_memory_is_counted_once(bounded: Bounded) -> None:
    """As with the workers that a data loader forks."""
    ended = bounded.run(hold(80, 3, "shared"), memory=160 * MEBIBYTE)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("held it") == 3
    assert not bounded.limits


def test_files_in_memory_count_too(isolated: Bounded) -> None:
    script = "head -c 40M /dev/zero > /dev/shm/a; head -c 70M /dev/zero > b; exec sleep 30"
    ended = isolated.run(["sh", "-c", script], memory=100 * MEBIBYTE, disk=80 * MEBIBYTE)
    assert ended.returncode == -9
    assert [kind for kind, _ in isolated.limits] == ["host-memory"]


def test_a_full_scratch_folder(isolated: Bounded) -> None:
    ended = isolated.run(["sh", "-c", "head -c 100M /dev/zero > big; ls -s big; exit 5"])
    assert ended.returncode == 5
    assert "No space left on device" in ended.stderr
    assert isolated.limits == [("disk", str(32 * MEBIBYTE))]
    assert not (isolated.folder / "big").exists()


def test_a_full_scratch_folder_on_disk(isolated: Bounded) -> None:
    """There nothing but the watcher ends it; what was written is cleared away."""
    ended = isolated.run(["sh", "-c", "head -c 100M /dev/zero > big; exec sleep 30"], on_disk=True)
    assert ended.returncode == -9
    assert isolated.limits == [("disk", str(32 * MEBIBYTE))]
    assert sorted(os.listdir(isolated.run_directory)) == [SPECIFICATION_FILE, EVENTS_FILE]


def test_full_shared_memory(isolated: Bounded) -> None:
    script = "head -c 100M /dev/zero > /dev/shm/big; exit 6"
    ended = isolated.run(["sh", "-c", script], memory=128 * MEBIBYTE)
    assert ended.returncode == 6
    assert ("disk", "/dev/shm") in isolated.limits


def test_what_stays_within_says_nothing(bounded: Bounded) -> None:
    assert bounded.run(["sh", "-c", "echo small > file"]).returncode == 0
    assert not bounded.limits


def test_the_default_bound_is_a_share_of_what_is_there() -> None:
    lines = Path("/proc/meminfo").read_text().splitlines()
    total = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemTotal"))
    assert 512 * MEBIBYTE <= host_memory_bound() < total


def test_memory_of_a_process() -> None:
    kept = bytearray(os.urandom(MEBIBYTE) * 64)
    own = [os.getpid()]
    assert private_memory(own, exact=False) >= len(kept)
    assert private_memory(own, exact=True) >= len(kept)
    assert private_memory([2**22 + 1], exact=True) == 0
