"""The daemons of a cluster, below the supervisor that ends them: a program, with the cluster's folder as its argument."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

_READY_SECONDS = 30.0


def run_daemons(folder: Path) -> None:
    """Below the supervisor: start the daemons one after the other, and stay as long as the controller does."""
    commands = json.loads((folder / "daemons.json").read_text())
    authentication = _started(commands[0], folder)
    end = time.monotonic() + _READY_SECONDS
    while not (folder / "munge" / "socket").exists():
        if time.monotonic() > end:
            return
        time.sleep(0.02)
    controller = _started(commands[1], folder)
    nodes = {command[-1]: _started(command, folder) for command in commands[2:]}
    while controller.poll() is None and authentication.poll() is None:
        time.sleep(0.2)
        for command in commands[2:]:
            returns = folder / f"return.{command[-1]}"
            if nodes[command[-1]].poll() is not None and returns.exists():
                returns.unlink()
                nodes[command[-1]] = _started(command, folder)


def _started(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    with (folder / f"{Path(command[0]).name}.stderr").open("ab") as errors:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
        )


if __name__ == "__main__":
    run_daemons(Path(sys.argv[1]))
