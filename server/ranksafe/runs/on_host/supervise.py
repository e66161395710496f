"""Start a run on its host: a supervisor that outlives the connection, then the view of it that the connection is for.

Request: ``{"directory", "files": {name: base64}, "specification", "devices": {"candidates", "count", "locks"} or null,
"prepend": {variable: path}, "lease_seconds", "kept_runs"}`` and what `follow` reads. The directory must not exist yet;
only the user can enter it. Values of environment variables are in the request alone: nothing of it is written to disk.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import shutil
import time
from typing import Any

from ranksafe.runs.on_host import follow, reserve
from ranksafe.runs.on_host.request import read_line
from ranksafe.runs.supervisor import Supervisor, report

_STARTING_SECONDS = 60.0


def main() -> None:
    """Start and follow; a failure to start is an answer too."""
    request = json.loads(read_line())
    directory = request["directory"]
    try:
        _make(directory, request)
    except OSError as error:
        follow.say({"refused": error.strerror or str(error)})
        return
    child = os.fork()
    if child == 0:
        _detach(directory)
        os._exit(_supervise(directory, request))
    os.waitpid(child, 0)
    _wait_for_supervisor(directory)
    follow.follow(request)


def _make(directory: str, request: Any) -> None:
    runs = os.path.dirname(directory)
    os.makedirs(runs, mode=0o700, exist_ok=True)
    os.chmod(runs, 0o700)
    _prune(runs, request["kept_runs"])
    os.mkdir(directory, 0o700)
    for name, content in request["files"].items():
        path = os.path.join(directory, *name.split("/"))
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(content))
    follow.renew_lease(directory, request["lease_seconds"])


def _prune(runs: str, kept: int) -> None:
    """Delete all but the newest runs; those that go on stay."""
    for name in sorted(os.listdir(runs))[: -max(kept, 1)]:
        folder = os.path.join(runs, name)
        if os.path.isdir(folder) and not os.path.islink(folder) and follow.has_ended(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _detach(directory: str) -> None:
    """Leave the connection's session; its streams are no longer ours."""
    os.setsid()
    if os.fork() != 0:
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    errors = os.open(
        os.path.join(directory, "supervisor.stderr"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
    )
    for number, stream in ((0, null), (1, null), (2, errors)):
        os.dup2(stream, number)
    os.chdir("/")


def _supervise(directory: str, request: Any) -> int:
    lock = os.open(os.path.join(directory, follow.ALIVE), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    specification: dict[str, Any] = request["specification"]
    environment = dict(os.environ, **specification["environment"])
    for name, value in request["prepend"].items():
        if value in environment.get(name, "").split(os.pathsep):
            continue
        environment[name] = os.pathsep.join(filter(None, (value, environment.get(name))))
    devices = request["devices"]
    locks: list[int] = []
    if devices is not None:
        try:
            chosen, locks = reserve.reserve(
                devices["candidates"], devices["count"], devices["locks"]
            )
        except (OSError, reserve.Taken) as error:
            report(
                directory,
                "failed-to-start",
                error=str(error),
                devices_free=getattr(error, "free", 0),
            )
            return 1
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(chosen)
    specification.update(environment=environment, directory=directory)
    specification["lease_file"] = os.path.join(directory, follow.LEASE)
    specification["cancel_file"] = os.path.join(directory, follow.CANCEL)
    status = Supervisor(specification, None).run()
    for each in locks:
        os.close(each)
    return status


def _wait_for_supervisor(directory: str) -> None:
    """Until it reported for the first time; the lock alone is held a little earlier."""
    end = time.monotonic() + _STARTING_SECONDS
    path = os.path.join(directory, "supervisor.json")
    while not os.path.exists(path) and time.monotonic() < end:
        with contextlib.suppress(OSError):
            if os.path.getsize(os.path.join(directory, "supervisor.stderr")) and follow.has_ended(
                directory
            ):
                return
        time.sleep(0.01)


if __name__ == "__main__":
    main()
