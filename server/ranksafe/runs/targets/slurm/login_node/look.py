"""What there is on a cluster: Slurm's version, its partitions, the interpreter and what it has installed.

Request: ``commands`` (folders for PATH), ``interpreter`` (as `environments.resolve` reads it), ``probe`` (source that
prints its facts as JSON), ``distributions`` (arguments of that), ``folder``. Answers one JSON object; what could not be
found out is missing from it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any

from ranksafe.runs.on_host import environments
from ranksafe.runs.on_host.request import read_line

_ANSWER_SECONDS = 45.0


def main() -> None:
    """Read the request, look, answer."""
    request = json.loads(read_line())
    os.environ["PATH"] = os.environ.get("PATH", os.defpath) + os.pathsep + request["commands"]
    print(json.dumps(look(request)))


def look(request: dict[str, Any]) -> dict[str, Any]:
    """The facts."""
    folder = os.path.abspath(os.path.expanduser(request["folder"]))
    found: dict[str, Any] = {"folder": folder}
    status, output, complaint = _run(["sbatch", "--version"])
    if status != 0:
        return dict(found, missing=complaint or "sbatch")
    found["slurm"] = output.split()[-1] if output else "?"
    found.update(_cluster())
    found.update(_interpreter(request))
    there = _nearest(folder)
    found["free_bytes"] = shutil.disk_usage(there).free
    found["writable"] = os.access(there, os.W_OK)
    return found


def _cluster() -> dict[str, Any]:
    # Partition, limit of time, nodes, their state, their generic resources, and how many of those are in use.
    wanted = "Partition:90|,Time:30|,Nodes:20|,StateLong:30|,Gres:200|,GresUsed:200|"
    status, output, complaint = _run(["sinfo", "-h", "-O", wanted])
    if status != 0:
        return {"silent": complaint}
    lines = [[cell.strip() for cell in line.split("|")] for line in output.splitlines()]
    accounting = _run(["sacct", "-n", "-X", "-S", "now", "-o", "JobID"])[0] == 0
    return {"partitions": lines, "accounting": accounting}


def _interpreter(request: dict[str, Any]) -> dict[str, Any]:
    chosen = environments.resolve(request["interpreter"])
    if "error" in chosen:
        return dict(chosen, broken=chosen["error"])
    path = chosen["words"][0]
    status, output, complaint = _run([path, "-c", request["probe"], *request["distributions"]])
    try:
        if status != 0:
            raise ValueError(complaint)
        facts = json.loads(output.splitlines()[-1])
    except (ValueError, IndexError) as error:
        return {"shown": path, "broken": str(error) or f"exit status {status}"}
    return {"interpreter": dict(facts, path=path)}


def _nearest(folder: str) -> str:
    """The folder, or the nearest one above it that is there."""
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return folder


def _run(command: list[str]) -> tuple[int, str, str]:
    """Exit status, output and last complaint; 127 where it cannot be started, 124 where it takes too long."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=_ANSWER_SECONDS,
            cwd="/",
            check=False,
        )
    except OSError as error:
        return 127, "", f"{command[0]}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return 124, "", f"{command[0]}: no answer in {_ANSWER_SECONDS:g} s"
    complaints = done.stderr.decode("utf-8", "replace").strip().splitlines()
    output = done.stdout.decode("utf-8", "replace").strip()
    return done.returncode, output, complaints[-1] if complaints else ""


if __name__ == "__main__":
    main()
