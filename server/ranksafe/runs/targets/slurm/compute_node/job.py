"""The job: started by the batch script on the first node, starts one launcher on each node and waits for them.

Lies in the run's folder, beside ``plan.json``. Leaves ``over.json`` there: {"status"}, srun's exit status.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys


def main() -> int:
    """Carry the job out; returns its exit status."""
    directory = os.path.dirname(os.path.abspath(__file__))
    environment = dict(os.environ)
    if "SLURM_CPUS_PER_TASK" in environment:
        # Since 22.05 srun does not take it over from sbatch by itself (sbatch(1), --cpus-per-task).
        environment.setdefault("SRUN_CPUS_PER_TASK", environment["SLURM_CPUS_PER_TASK"])
    command = ["srun", f"--nodes={os.environ['SLURM_JOB_NUM_NODES']}", "--ntasks-per-node=1"]
    # Each node writes its own log: srun would cut lines (--label) or take a folder's name for a pattern (--output).
    command += ["--kill-on-bad-exit=1", "--input=none", "--mpi=none"]
    node = os.path.join(directory, "node.py")
    command += [sys.executable, "-I", node, first_address(), str(free_port())]
    try:
        status = subprocess.run(command, env=environment, check=False).returncode
    except OSError as error:
        print(f"srun: {error.strerror}", file=sys.stderr)
        status = 127
    # What the run wrote, to where the next one finds it.
    subprocess.run(
        [sys.executable, "-I", os.path.join(directory, "tree.py"), directory], check=False
    )
    _leave_word(os.path.join(directory, "over.json"), status)
    return status if status >= 0 else 128 - status


def _leave_word(path: str, status: int) -> None:
    """On a full disk there is none; Slurm keeps the exit status for a while."""
    try:
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump({"status": status}, file)
        os.replace(path + ".new", path)
    except OSError:
        # Nor can it be complained of: standard error, on the same disk, would turn the exit status into 120.
        pass


def first_address() -> str:
    """Where the ranks meet: the address Slurm itself uses for the first node.

    A host's own name often leads to its loopback address (Debian writes 127.0.1.1 into /etc/hosts).
    """
    nodes = _output(["scontrol", "show", "hostnames", os.environ["SLURM_JOB_NODELIST"]]).split()
    first = nodes[0] if nodes else socket.gethostname()
    found = re.search(r"\bNodeAddr=(\S+)", _output(["scontrol", "-o", "show", "node", first]))
    return found.group(1) if found else first


def free_port() -> int:
    """A TCP port nobody listens on, on this node: the first of the job."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout.decode()
    except OSError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
