"""One node's task: becomes the launcher of the node's ranks, with ``node.N.log`` in the run's folder as its output.

Arguments: the first node's address, and a port there. The command lies in ``plan.json`` beside this file; in it, the
words that only a node knows are written as variables (`ADDRESS`, `PORT`, `NODE`). No shell reads any of it.
"""

from __future__ import annotations

import json
import os
import sys

ADDRESS = "$MASTER_ADDR"
PORT = "$MASTER_PORT"
NODE = "$SLURM_NODEID"
NOT_HERE = "ranksafe: node {node} cannot use {path}: {reason}"
"""What a log says where a node does not see a folder or the interpreter."""


def main() -> None:
    """Become the launcher."""
    directory = os.path.dirname(os.path.abspath(__file__))
    _redirect_output(os.path.join(directory, f"node.{int(os.environ['SLURM_NODEID'])}.log"))
    with open(
        os.path.join(directory, "plan.json"), encoding="utf-8", errors="surrogateescape"
    ) as file:
        plan = json.load(file)
    values = {ADDRESS: sys.argv[1], PORT: sys.argv[2], NODE: os.environ["SLURM_NODEID"]}
    command = [_filled(word, values) for word in plan["launcher"]] + plan["script"]
    environment = dict(os.environ, **plan["environment"])
    path = [entry for entry in (plan["inject"], environment.get("PYTHONPATH")) if entry]
    environment["PYTHONPATH"] = os.pathsep.join(path)
    try:
        place = plan["working_directory"]
        os.chdir(place)
        place = command[0]
        os.execve(place, command, environment)
    except OSError as error:
        name = os.environ.get("SLURMD_NODENAME", values[NODE])
        sys.exit(NOT_HERE.format(node=name, path=place, reason=error.strerror))


def _redirect_output(path: str) -> None:
    """On the file descriptors, which what comes after this program inherits."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.close(descriptor)


def _filled(word: str, values: dict[str, str]) -> str:
    """A variable stands alone, or after an option's ``=``."""
    option, equals, value = word.rpartition("=")
    return option + equals + values.get(value, value)


if __name__ == "__main__":
    main()
