"""Lays a run's files into its folder on the shared disk, and submits the job.

Request: ``directory`` (of the run; must not exist yet), ``files`` (name to text), ``project`` (null, or ``base``,
``tree`` and ``files`` as `tree.make` takes them), ``options`` (sbatch's), ``script``, ``environment`` (to add to
sbatch's, which passes it on), ``commands`` (folders for PATH). Answers {"job"}, {"changed"} where another
submission has come between, or {"refused"} or {"unwritable"} with the reason.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any

from ranksafe.runs.on_host.request import read_line
from ranksafe.runs.targets.slurm.login_node import tree

_KEPT = 30
_ANSWER_SECONDS = 120.0
_KEPT_VARIABLES = ("SLURM_CLUSTERS", "SLURM_CONF", "SLURM_JWT")


def main() -> None:
    """Read the request, submit, answer."""
    request = json.loads(read_line())
    os.environ["PATH"] = os.environ.get("PATH", os.defpath) + os.pathsep + request["commands"]
    directory = request["directory"]
    runs = os.path.dirname(directory)
    try:
        os.makedirs(runs, mode=0o700, exist_ok=True)
        _prune(runs)
        os.mkdir(directory, 0o700)
    except OSError as error:
        print(json.dumps(_unwritable(directory, error)))
        return
    try:
        for name, text in request["files"].items():
            _write(os.path.join(directory, *name.split("/")), text)
        if request["project"]:
            tree.make(directory, **request["project"])
        answer = _submit(request)
    except tree.Changed:
        answer = {"changed": directory}
    except OSError as error:
        answer = _unwritable(directory, error)
    if "job" not in answer:
        shutil.rmtree(directory, ignore_errors=True)
    print(json.dumps(answer))


def _unwritable(directory: str, error: OSError) -> dict[str, str]:
    return {"unwritable": f"{error.filename or directory}: {error.strerror}"}


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


def _submit(request: dict[str, Any]) -> dict[str, str]:
    command = ["sbatch", "--parsable", *request["options"]]
    # What an allocation around us has set would contradict the job's own (SLURM_MEM_PER_CPU against --mem).
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("SLURM_") or name in _KEPT_VARIABLES
    }
    try:
        done = subprocess.run(
            command,
            input=os.fsencode(request["script"]),
            env=dict(inherited, **request["environment"]),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except OSError as error:
        return {"refused": f"sbatch: {error.strerror}"}
    except subprocess.TimeoutExpired:
        return {"refused": f"sbatch: no answer in {_ANSWER_SECONDS:g} s"}
    job = done.stdout.decode("utf-8", "replace").strip().split(";")[0]
    if done.returncode != 0 or not job.isdigit():
        return {"refused": done.stderr.decode("utf-8", "replace").strip() or "sbatch: no job"}
    return {"job": job}


def _prune(runs: str) -> None:
    """Delete the oldest runs that are over; the names begin with the time."""
    over = [each for each in sorted(os.listdir(runs)) if _is_over(os.path.join(runs, each))]
    for name in over[: -_KEPT + 1]:
        directory = os.path.join(runs, name)
        try:
            # Of a job that was killed.
            tree.give_back(directory)
        except (OSError, ValueError, KeyError):
            continue
        shutil.rmtree(directory, ignore_errors=True)


def _is_over(directory: str) -> bool:
    return os.path.exists(os.path.join(directory, "over.json"))


if __name__ == "__main__":
    main()
