"""One program whose ranks run: starts them, looks whether they do anything, ends them.

Imported by fork_ranks.py in the Python that has torch.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_STACKS = signal.SIGUSR2
_SECONDS_FOR_STACKS = 0.5
_BUSY_SECONDS = 0.05
"""Processor time between two looks from which a program is taken to do more than wait."""


class BecomeRank(BaseException):
    """Raised in a forked process: unwinds the stack, so that the script is all that runs in it."""

    def __init__(self, script: str, environment: dict[str, str]) -> None:
        super().__init__(script)
        self.script = script
        self.environment = environment


class Job:
    """A program whose ranks run."""

    def __init__(self, wanted: dict[str, Any], scratch: Path) -> None:
        self.wanted = wanted
        self.folder = scratch / wanted["id"]
        self.work = self.folder / "work"
        self.work.mkdir(parents=True)
        self.agent = 0
        self.pids: list[int] = []
        self.exits: dict[int, int] = {}
        self.began = time.monotonic()
        self.ended_by: str | None = None
        self.quiet_since = self.began
        self.processor_seconds = 0.0

    def start(self, *, fork: bool) -> None:
        """Start the store, then the ranks."""
        port = self._start_agent()
        for rank in range(self.wanted["ranks"]):
            environment = {**self._environment(rank, port), **self.wanted["environment"]}
            if fork:
                self._fork(rank, environment)
            else:
                self._spawn(rank, environment)

    def poll(self) -> bool:
        """Look at the ranks; whether the program has ended, also by being ended."""
        for rank, pid in enumerate(self.pids):
            if rank not in self.exits:
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    self.exits[rank] = os.waitstatus_to_exitcode(status)
        if len(self.exits) < len(self.pids):
            if self._saw_enough():
                self.ended_by = "enough seen"
            elif time.monotonic() - self.quiet_since > self.wanted["quiet_seconds"]:
                self.ended_by = "waiting"
            elif time.monotonic() - self.began > self.wanted["limit_seconds"]:
                self.ended_by = "limit"
            else:
                return False
            if self.ended_by != "enough seen":
                self._ask_for_stacks()
        self.kill()
        return True

    def look(self, usage: dict[int, tuple[float, bool]]) -> None:
        """Note whether its processes do anything; a process that waits for a processor does."""
        seconds, runnable = usage.get(self.agent, (0.0, True))
        if runnable or abs(seconds - self.processor_seconds) > _BUSY_SECONDS:
            self.quiet_since = time.monotonic()
        # Ranks that wait wake up now and then: over many looks that would add up to work.
        self.processor_seconds = seconds

    def result(self) -> dict[str, Any]:
        """What can be told of it; a rank that was ended has no exit status."""
        return {
            "id": self.wanted["id"],
            "exits": [self.exits.get(rank) for rank in range(len(self.pids))],
            "ended_by": self.ended_by,
            "seconds": round(time.monotonic() - self.began, 2),
        }

    def kill(self) -> None:
        """End whatever is left of it, children of the ranks too."""
        if self.agent:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.agent, signal.SIGKILL)
        for rank, pid in enumerate(self.pids):
            if rank not in self.exits:
                os.waitpid(pid, 0)
        if self.agent:
            os.waitpid(self.agent, 0)
        self.agent = 0

    def _saw_enough(self) -> bool:
        pattern = self.wanted["enough"]
        if not pattern:
            return False
        failed = [rank for rank, status in self.exits.items() if status != 0]
        return any(re.search(pattern, self._stderr(rank), re.MULTILINE) for rank in failed)

    def _stderr(self, rank: int) -> str:
        return (self.folder / f"rank{rank}.err").read_text(encoding="utf-8", errors="replace")

    def _ask_for_stacks(self) -> None:
        for rank, pid in enumerate(self.pids):
            if rank not in self.exits:
                os.kill(pid, _STACKS)
        time.sleep(_SECONDS_FOR_STACKS)

    def _environment(self, rank: int, port: int) -> dict[str, str]:
        """What torchrun (torch 2.13, distributed/elastic/agent/server/local_elastic_agent.py) gives a worker."""
        ranks, name = str(self.wanted["ranks"]), str(rank)
        return {
            **dict.fromkeys(("RANK", "LOCAL_RANK", "ROLE_RANK"), name),
            **dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE"), ranks),
            "GROUP_RANK": "0",
            "GROUP_WORLD_SIZE": "1",
            "ROLE_NAME": "default",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "TORCHELASTIC_RESTART_COUNT": "0",
            "TORCHELASTIC_MAX_RESTARTS": "0",
            "TORCHELASTIC_RUN_ID": self.wanted["id"],
            "TORCHELASTIC_USE_AGENT_STORE": "True",
        }

    def _start_agent(self) -> int:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            die_with_parent()
            serve_store(writer)
        self.agent = pid
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        os.close(writer)
        with open(reader, encoding="ascii") as answer:
            return int(answer.read())

    def _fork(self, rank: int, environment: dict[str, str]) -> None:
        threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1
        if threads != 1:
            raise RuntimeError(f"{threads} threads run: a fork would lose them")
        pid = os.fork()
        if pid == 0:
            self._settle(rank)
            raise BecomeRank(self.wanted["script"], environment)
        self.pids.append(pid)

    def _spawn(self, rank: int, environment: dict[str, str]) -> None:
        command = [sys.executable, self.wanted["script"]]
        process = subprocess.Popen(
            command, env={**os.environ, **environment}, preexec_fn=lambda: self._settle(rank)
        )
        # It is waited for by its id, as the forked ones are.
        process.returncode = 0
        self.pids.append(process.pid)

    def _settle(self, rank: int) -> None:
        """In the new process: its process group, folder and output."""
        os.setpgid(0, self.agent)
        die_with_parent()
        os.chdir(self.work)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        for number, name in ((1, "out"), (2, "err")):
            file = os.open(
                self.folder / f"rank{rank}.{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND
            )
            os.dup2(file, number)
            os.close(file)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(
                number, signal.SIG_DFL if number == signal.SIGTERM else signal.default_int_handler
            )
        faulthandler.register(_STACKS, file=2, all_threads=True)


def usage_of_groups() -> dict[int, tuple[float, bool]]:
    """Processor seconds of each process group, and whether one of its processes runs, wants to, or reads a disk."""
    ticks = os.sysconf("SC_CLK_TCK")
    usage: dict[int, tuple[float, bool]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text(errors="replace").rpartition(") ")[2].split()
        except OSError:
            continue
        group = int(fields[2])
        seconds, runnable = usage.get(group, (0.0, False))
        usage[group] = (
            seconds + (int(fields[11]) + int(fields[12])) / ticks,
            runnable or fields[0] in "RD",
        )
    return usage


def die_with_parent() -> None:
    """Where the system can: no rank outlives this process, however it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def serve_store(writer: int) -> None:
    """Be the store until killed."""
    import torch.distributed as dist

    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    os.write(writer, str(store.port).encode("ascii"))
    os.close(writer)
    while True:
        signal.pause()
