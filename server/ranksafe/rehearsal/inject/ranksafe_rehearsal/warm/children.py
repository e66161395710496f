"""A launcher that was started warm starts its ranks warm, too: as forks of what it was itself before it began.

Its own process is of no use for that: it has threads and sockets. So it keeps a child as it was at the start, which
forks twice for each rank and lets the launcher adopt what the second fork gave (``PR_SET_CHILD_SUBREAPER``). The rank
is a child like any other: the launcher waits for it, signals it and hears of its end as ever.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

from . import messages

_SET_PARENT_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36
_library = ctypes.CDLL(None, use_errno=True)


def keep_one() -> socket.socket | dict[str, Any]:
    """In the launcher the way to its child; in each rank, later on, what the launcher asked for."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    launcher = os.getpid()
    if os.fork():
        theirs.close()
        return ours
    ours.close()
    _library.prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != launcher:
        os._exit(0)
    while True:
        asked = messages.receive(theirs)
        if asked is None:
            os._exit(0)
        if _fork(theirs, *asked):
            theirs.close()
            return dict(asked[0])


def _fork(connection: socket.socket, request: dict[str, Any], files: Sequence[int]) -> bool:
    """Whether this is the rank, by now a child of the launcher."""
    number_reader, number_writer = os.pipe()
    adopted_reader, adopted_writer = os.pipe()
    middle = os.fork()
    if middle == 0:
        process = os.fork()
        if process == 0:
            for each in (number_reader, number_writer, adopted_writer):
                os.close(each)
            os.read(adopted_reader, 1)
            os.close(adopted_reader)
            _settle(request, files)
            return True
        os.write(number_writer, str(process).encode())
        os._exit(0)
    os.close(number_writer)
    number = os.read(number_reader, 20)
    os.waitpid(middle, 0)
    for each in (*files, number_reader, adopted_reader, adopted_writer):
        os.close(each)
    messages.send(connection, {"process": int(number)})
    return False


def _settle(request: dict[str, Any], files: Sequence[int]) -> None:
    if request["session"]:
        os.setsid()
    for target, number in enumerate(files):
        os.dup2(number, target)
    for number in files:
        os.close(number)
    if request["directory"] is not None:
        os.chdir(request["directory"])


def ask_for(connection: socket.socket, launches: Any) -> None:
    """From now on `subprocess` has those programs forked for which ``launches(command)`` is true. CPython 3.11 to 3.14:
    ``subprocess._fork_exec`` has the arguments of ``_posixsubprocess.fork_exec``."""
    module: Any = subprocess
    original = module._fork_exec
    lock = threading.Lock()

    def fork_exec(*arguments: Any) -> Any:
        request = _as_request(arguments)
        if request is not None and launches(request["command"]):
            streams = [number if number >= 0 else target for target, number in _streams(arguments)]
            try:
                with lock:
                    return _adopted(connection, request, streams)
            except (OSError, ValueError, TypeError):  # it is gone: start as everybody does
                pass
        return original(*arguments)

    module._fork_exec = fork_exec


def _adopted(connection: socket.socket, request: dict[str, Any], streams: list[int]) -> int:
    _library.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        messages.send(connection, request, streams)
        answer = messages.receive(connection)
        if answer is None:
            raise OSError("no answer")
        return int(answer[0]["process"])
    finally:
        _library.prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _streams(arguments: tuple[Any, ...]) -> list[tuple[int, int]]:
    return [(0, arguments[6]), (1, arguments[9]), (2, arguments[11])]


def _as_request(arguments: tuple[Any, ...]) -> dict[str, Any] | None:
    """What is asked for; None where that is more than a program with other streams, variables and folder."""
    command, _, closes, passed, directory, environment = arguments[:6]
    session, group, *users = arguments[15:21]
    # The one file that is always passed on is the pipe that tells of a failed start, which a fork has no need of.
    prepares = arguments[21]
    plain = closes and tuple(passed) == (arguments[13],) and prepares is None and group == -1
    if not plain or any(each not in (None, -1) for each in users):
        return None
    given = os.environ if environment is None else _decoded(environment)
    return {
        "command": [os.fsdecode(word) for word in command],
        "directory": None if directory is None else os.fsdecode(directory),
        "environment": dict(given),
        "session": bool(session),
    }


def _decoded(environment: Sequence[bytes]) -> dict[str, str]:
    pairs = (os.fsdecode(each).partition("=") for each in environment)
    return {name: value for name, _, value in pairs}


def is_possible() -> bool:
    """Whether this Python starts programs as `ask_for` knows it."""
    return sys.version_info >= (3, 11) and hasattr(subprocess, "_fork_exec")
