"""A command that is forked from a template, a process outside, instead of being started (`ranksafe_rehearsal.warm`).

The template is reached before this process leaves the user's namespaces, and asked from inside of the new ones: it
enters them with a fork, which becomes the command and a child of who has asked. Whatever goes wrong before that, the
command is started as ever.
"""

# Files as the kernel sees them, call by call: pathlib would only hide which calls are made.
# ruff: noqa: PTH109, PTH118, PTH123

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import struct
from collections.abc import Sequence
from typing import Any

WARM_FILE = "warm-start.json"
"""In the run's folder: ``folder``, the template's, and ``ranks``, whether they may be forked, too."""
_NAMESPACES = ("user", "net", "uts", "ipc", "pid", "mnt")
_PATIENCE_SECONDS = 10.0


class Template:
    """The way to it."""

    def __init__(self, connection: socket.socket, ranks: bool) -> None:
        self._connection = connection
        self._ranks = ranks

    def start(self, command: Sequence[str]) -> int | None:
        """The process that becomes ``command``, a child of this one; None: nothing was started."""
        files = [0, 1, 2]
        try:
            files += [os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in _NAMESPACES]
            send(self._connection, self._request(command), files)
            answer = receive(self._connection)
            if "process" not in answer:
                return None
            self._connection.sendall(b"\n")
            return int(answer["process"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        finally:
            self._connection.close()
            for each in files[3:]:
                os.close(each)

    def close(self) -> None:
        """Somebody else asks."""
        self._connection.close()

    def _request(self, command: Sequence[str]) -> dict[str, Any]:
        umask = os.umask(0o077)
        os.umask(umask)
        with open("/proc/self/oom_score_adj", encoding="ascii") as file:
            ended_first = file.read().strip()
        # Imported here: who only reads about templates may be on Windows.
        import resource

        from ranksafe.rehearsal.isolation.kernel import KEPT_CAPABILITIES

        kinds = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
        limits = {kind: resource.getrlimit(kind) for kind in kinds}
        limits[resource.RLIMIT_CORE] = (0, limits[resource.RLIMIT_CORE][1])
        return {
            "ask": "start",
            "command": list(command),
            "environment": dict(os.environ),
            "directory": os.getcwd(),
            "ranks": self._ranks,
            "umask": umask,
            "nice": os.getpriority(os.PRIO_PROCESS, 0),
            "processors": sorted(os.sched_getaffinity(0)),
            "limits": limits,
            "ended_first": ended_first,
            "capabilities": sorted(KEPT_CAPABILITIES),
        }


def reach(run_directory: str) -> Template | None:
    """The template that the run is to use, if there is one and it is the user's own."""
    try:
        with open(os.path.join(run_directory, WARM_FILE), encoding="utf-8") as file:
            told = json.load(file)
        return Template(connect(told["folder"]), bool(told["ranks"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def connect(folder: str) -> socket.socket:
    """A connection to the template in ``folder``. Raises OSError, also where another user could stand behind it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
            raise PermissionError(folder)
        connection.settimeout(_PATIENCE_SECONDS)
        # A socket's path may have 107 bytes; a folder that is open has a short one.
        connection.connect(f"/proc/self/fd/{descriptor}/socket")
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        if struct.unpack("3i", peer)[1] != os.geteuid():
            raise PermissionError(folder)
    except BaseException:
        with contextlib.suppress(OSError):
            connection.close()
        raise
    finally:
        os.close(descriptor)
    return connection


def send(connection: socket.socket, message: dict[str, Any], files: Sequence[int] = ()) -> None:
    """Send a line of JSON, with open files beside it. Raises OSError."""
    data = json.dumps(message).encode() + b"\n"
    sent = socket.send_fds(connection, [data], files) if files else 0
    connection.sendall(data[sent:])


def receive(connection: socket.socket) -> dict[str, Any]:
    """The answer. Raises OSError, ValueError; an empty one where the other side is gone."""
    data = b""
    while not data.endswith(b"\n"):
        more = connection.recv(1 << 16)
        if not more:
            return {}
        data += more
    answer = json.loads(data)
    return answer if isinstance(answer, dict) else {}
