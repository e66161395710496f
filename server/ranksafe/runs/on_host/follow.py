"""The view of a run on its host: its files as they grow, and the lease that is renewed while somebody looks.

Request: ``{"directory", "lease_seconds", "have": {file: bytes}}``. Answers with messages: a line of JSON, then as many
bytes as its ``size`` says. ``{"file", "at", "size"}`` is a part of a file that grows, without ``at`` the whole of one
that is replaced; ``{"caught_up": true}`` comes after all that was there at the beginning, of a run that goes on;
``{"over": true}`` is the last, with ``restarted`` where the host was started anew after the supervisor's last word.
From standard input it reads lines: ``b`` (a sign of life: the lease begins anew), ``c`` (end the run), ``q`` and a
question to the ranks, as JSON. The end of its input ends the view, not the run.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import sys
import time
from typing import Any

from ranksafe.runs.on_host.request import read_line

ALIVE = "alive.lock"
"""Held by the supervisor as long as it lives, whatever ends it."""
LEASE = "lease.json"
CANCEL = "cancel"
QUESTION = "look"
"""Read by the ranks' agent, which answers with a file of its own."""
_GROWING = re.compile(
    r"(rank\d+|launcher)\.(jsonl|fatal|(stdout|stderr)(\.\d+|\.telling)?)\Z|supervisor\.stderr\Z"
)
_REPLACED = re.compile(r"rank\d+\.[a-z-]+\Z|supervisor\.json\Z")
_CHUNK = 1 << 18
_PERIOD_SECONDS = 0.05


def main() -> None:
    """Follow a run that was started earlier."""
    follow(json.loads(read_line()))


def follow(request: Any) -> None:
    """Until the run is over or nobody looks any more."""
    directory = request["directory"]
    if not os.path.isdir(directory):
        say({"missing": True})
        return
    sent: dict[str, int] = dict(request["have"])
    shown: dict[str, tuple[int, int]] = {}
    renew_lease(directory, request["lease_seconds"])
    caught_up = False
    while True:
        over = has_ended(directory)
        if over:
            # Files that are mapped into memory (the ranks' collectives) change without a new time.
            shown.clear()
        _send_news(directory, sent, shown)
        if not caught_up and not over:
            say({"caught_up": True})
            caught_up = True
        if over:
            restarted = _was_restarted(directory)
            say({"over": True, "free_bytes": _free_bytes(directory), "restarted": restarted})
            return
        readable, _, _ = select.select([0], [], [], _PERIOD_SECONDS)
        if readable:
            line = read_line()
            if not line:
                return
            if line.startswith(b"c"):
                _cancel(directory)
            elif line.startswith(b"q"):
                _write(os.path.join(directory, QUESTION), line[1:])
            renew_lease(directory, request["lease_seconds"])


def renew_lease(directory: str, seconds: float) -> None:
    """The run may go on for so long without anybody looking. A full disk must not end the view."""
    lease = {"renewed": time.time(), "seconds": seconds}
    _write(os.path.join(directory, LEASE), json.dumps(lease).encode())


def _write(path: str, content: bytes) -> None:
    with contextlib.suppress(OSError):
        with open(path + ".new", "wb") as file:
            file.write(content)
        os.replace(path + ".new", path)


def has_ended(directory: str) -> bool:
    """Whether the supervisor is gone. A lock, not a process id, which another process may have by now."""
    import fcntl  # not on Windows, where only the near side of a connection is

    try:
        lock = os.open(os.path.join(directory, ALIVE), os.O_RDWR)
    except OSError:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


def say(message: Any, content: bytes = b"") -> None:
    """Write one message."""
    output = sys.stdout.buffer
    output.write(json.dumps(message).encode() + b"\n" + content)
    output.flush()


def _send_news(directory: str, sent: dict[str, int], shown: dict[str, tuple[int, int]]) -> None:
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        with contextlib.suppress(OSError):
            if _GROWING.match(name):
                _send_growth(path, name, sent)
            elif _REPLACED.match(name):
                _send_whole(path, name, shown)


def _send_growth(path: str, name: str, sent: dict[str, int]) -> None:
    at = sent.get(name, 0)
    if os.stat(path).st_size <= at:
        return
    with open(path, "rb") as file:
        file.seek(at)
        while True:
            content = file.read(_CHUNK)
            if not content:
                break
            say({"file": name, "at": at, "size": len(content)}, content)
            at += len(content)
    sent[name] = at


def _send_whole(path: str, name: str, shown: dict[str, tuple[int, int]]) -> None:
    found = os.stat(path)
    state = (found.st_mtime_ns, found.st_ino)
    if shown.get(name) == state or found.st_size > _CHUNK * 16:
        return
    with open(path, "rb") as file:
        content = file.read()
    say({"file": name, "size": len(content)}, content)
    shown[name] = state


def _cancel(directory: str) -> None:
    with contextlib.suppress(OSError):
        os.close(os.open(os.path.join(directory, CANCEL), os.O_WRONLY | os.O_CREAT, 0o600))


def _was_restarted(directory: str) -> bool:
    """Whether the host is up for less long than the supervisor is silent."""
    try:
        last = os.stat(os.path.join(directory, "supervisor.json")).st_mtime
        with open("/proc/stat", encoding="ascii") as file:
            started = [line.split()[1] for line in file if line.startswith("btime ")]
        return bool(started) and last < int(started[0])
    except OSError:
        return False


def _free_bytes(directory: str) -> int:
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize


if __name__ == "__main__":
    main()
