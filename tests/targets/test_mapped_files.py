"""What ranks write through mapped memory changes without a new time; its end has to arrive all the same."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path

from ranksafe.runs.hosts.local import LocalHost
from ranksafe.runs.on_host import program
from ranksafe.runs.remote.mirror import Mirror

_HOLDS_THE_LOCK = """\
import fcntl, sys
lock = open(sys.argv[1], "w")
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_the_last_collectives_of_a_rank_on_a_host_arrive(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    ring = there / "rank0.collectives"
    ring.write_bytes(bytes(4096))
    supervisor = subprocess.Popen(
        [sys.executable, "-c", _HOLDS_THE_LOCK, str(there / "alive.lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert supervisor.stdin is not None
    assert supervisor.stdout is not None
    assert supervisor.stdout.readline() == b"held\n"
    request = {"directory": str(there), "lease_seconds": 60, "have": {}}
    conversation = LocalHost().start(program("on_host.follow", "on_host.request"), request)
    mirror = Mirror(here, str(there), str(here))
    try:
        while not (here / ring.name).exists():
            mirror.take(conversation.receive())
        before = ring.stat()
        with ring.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            mapped[:4] = b"last"
        os.utime(ring, ns=(before.st_atime_ns, before.st_mtime_ns))
        supervisor.communicate(timeout=30)
        while mirror.over is None:
            mirror.take(conversation.receive())
    finally:
        conversation.close()
        supervisor.kill()
    assert (here / ring.name).read_bytes()[:4] == b"last"
