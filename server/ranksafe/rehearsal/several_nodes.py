"""Starts one launcher per simulated node: ``python several_nodes.py FILE``, or ``-`` for standard input.

The settings are JSON: ``{"commands": [[...], [...]], "environment": {...}}``, one command per node, in the order of the
nodes; ``environment`` is added to this process's for all of them. What a node's launcher must be told of the others is
part of its command; `torchrun_options` and `accelerate_options` give it.

Every node's processes find their node's number in RANKSAFE_REHEARSAL_NODE. This module prints nothing: standard
output and error are the launchers'. Signals to end are passed on; when one node fails, the others are ended as well.
The exit status is that of the first node that failed, 128 plus the signal's number if a signal ended it, or 0.

Standard library only, CPython 3.9 or newer: the user's interpreter runs it as a file, as do ours.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

NODE_VARIABLE = "RANKSAFE_REHEARSAL_NODE"
_ADDRESS = "127.0.0.1"
_PATIENCE_SECONDS = 15.0
"""How long a node may take to end after a signal."""
_POLL_SECONDS = 0.05


def torchrun_options(node: int, nodes: int, port: int) -> list[str]:
    """What torchrun of ``node`` must be told, besides ``--nproc_per_node``. Not together with ``--standalone``."""
    return [
        f"--nnodes={nodes}",
        f"--node_rank={node}",
        f"--master_addr={_ADDRESS}",
        f"--master_port={port}",
    ]


def accelerate_options(node: int, nodes: int, port: int) -> list[str]:
    """What ``accelerate launch`` of ``node`` must be told; its ``--num_processes`` counts the ranks of all nodes."""
    return [
        f"--num_machines={nodes}",
        f"--machine_rank={node}",
        f"--main_process_ip={_ADDRESS}",
        f"--main_process_port={port}",
    ]


def settings_as_text(
    commands: Sequence[Sequence[str]], environment: Mapping[str, str] | None = None
) -> str:
    """The settings, as this program reads them. ``commands``: one per node."""
    return json.dumps(
        {
            "commands": [list(command) for command in commands],
            "environment": dict(environment or {}),
        }
    )


class Nodes:
    """The launchers of all nodes, each in a process group of its own, so that none gets a signal twice."""

    def __init__(self, commands: Sequence[Sequence[str]], environment: Mapping[str, str]) -> None:
        self.commands = commands
        self.environment = environment
        self.running: list[subprocess.Popen[bytes]] = []
        self.received: int | None = None

    def run(self) -> int:
        """Start all, wait, and return the exit status. Raises OSError where a command cannot be started."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._note_signal)
        try:
            for node, command in enumerate(self.commands):
                self.running.append(self._start(node, command))
            return self._wait()
        finally:
            self._end_all()

    def _start(self, node: int, command: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            list(command),
            env={**os.environ, **self.environment, NODE_VARIABLE: str(node)},
            stdin=subprocess.DEVNULL if node else None,
            start_new_session=True,
        )

    def _note_signal(self, number: int, _frame: object) -> None:
        self.received = number

    def _wait(self) -> int:
        while True:
            statuses = [process.poll() for process in self.running]
            failed = next((status for status in statuses if status not in (None, 0)), None)
            if failed is not None:
                return 128 - failed if failed < 0 else failed
            if self.received is not None:
                return 128 + self.received
            if all(status == 0 for status in statuses):
                return 0
            time.sleep(_POLL_SECONDS)

    def _end_all(self) -> None:
        """Ask every node to end, by the signal that came if one did, and make it after some patience."""
        self._signal_groups(self.received or signal.SIGTERM, self._unfinished())
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self._unfinished() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        # Ranks that a launcher put into sessions of their own are left to whoever supervises this process.
        self._signal_groups(signal.SIGKILL, self.running)
        for process in self.running:
            process.wait()

    def _unfinished(self) -> list[subprocess.Popen[bytes]]:
        return [process for process in self.running if process.poll() is None]

    def _signal_groups(self, number: int, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        for process in processes:
            try:
                os.killpg(process.pid, number)
            except (ProcessLookupError, PermissionError):  # nobody is left in it
                continue


def _read_settings(path: str) -> Any:
    if path == "-":
        return json.load(sys.stdin)
    return json.loads(Path(path).read_text(encoding="utf-8"))


def main(arguments: Sequence[str]) -> int:
    """Run the nodes that the settings name; 2 for a wrong call."""
    if len(arguments) != 1:
        return 2
    settings = _read_settings(arguments[0])
    return Nodes(settings["commands"], settings.get("environment") or {}).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
