"""Which process this is, and where its output goes."""

from __future__ import annotations

import array
import os
import socket
import sys
from typing import Any

from . import descriptors

_STREAMS = {1: "stdout", 2: "stderr"}
_ANSWER_SECONDS = 10.0
_LONGEST_ADDRESS = 100
"""``sun_path`` has 104 bytes on the BSDs and macOS, 108 on Linux."""
_OPTIONS_WITH_VALUE = ("-X", "-W", "--check-hash-based-pycs")


_spawned: tuple[int, int] | None = None
"""Of a process that another one started as a rank: which, and of how many."""


def become(number: int, count: int) -> None:
    """This process is the rank ``number`` of ``count``, whatever its command line is."""
    global _spawned
    _spawned = number, count


def current_rank(script: str, module: str = "") -> int | None:
    """The rank of this process, or None where it is the launcher, a worker or a helper.

    ``module``: the name by which the script is started, if it is not started as a file.

    A rank is the process whose main program is the run's script. Launchers for one process set no RANK (accelerate
    1.15.0 ``simple_launcher``), so the command line decides and RANK only numbers.
    """
    if _spawned is not None:
        return _spawned[0]
    main = _main_program()
    rank = os.environ.get("RANK", "")
    if main is None:
        return int(rank) if rank.isdigit() else None
    if module and main == "-m " + module:
        return int(rank) if rank.isdigit() else 0
    if not main or main.startswith("-") or not script or not _same_file(main, script):
        return None
    return int(rank) if rank.isdigit() else 0


def description(rank: int) -> dict[str, Any]:
    """What is worth knowing of this process when it starts."""
    return {
        "rank": rank,
        "local_rank": _spawned[0] if _spawned else _number("LOCAL_RANK", 0),
        "world_size": _spawned[1] if _spawned else _number("WORLD_SIZE", 1),
        # The node's name in its cluster, which users know it by.
        "host": os.environ.get("SLURMD_NODENAME") or socket.gethostname(),
        "pid": os.getpid(),
        "python": sys.version.split()[0],
    }


def redirect_output(directory: str, rank: int, address: str | None) -> None:
    """Give this rank outputs of its own: lines of several ranks in one pipe run into each other.

    Done on the file descriptors, so that output of C++ code and of forked workers follows. ``address``: where the
    run's supervisor takes pipes, which it reads whatever happens to the disk; without it they are files. Where there
    can be none of their own, the launcher's stay.
    """
    if address is not None:
        ends = [os.pipe() for _ in _STREAMS]
        try:
            if _handed_over(address, rank, [reading for reading, _ in ends]):
                for stream, (_, writing) in zip(_STREAMS, ends):
                    os.dup2(writing, stream)
                # Should the supervisor be killed, the run is ended in order, and not by a pipe that nobody reads.
                for reading, _ in ends:
                    descriptors.moved_up(os.dup(reading))
        finally:
            for end in ends:
                os.close(end[0])
                os.close(end[1])
        return
    for stream, name in _STREAMS.items():
        path = os.path.join(directory, f"rank{rank}.{name}")
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(descriptor, stream)
            os.close(descriptor)
        except OSError:
            return


def _handed_over(address: str, rank: int, pipes: list[int]) -> bool:
    """Whether the supervisor reads these pipes from now on (`ranksafe.runs.drain`)."""
    folder = -1
    try:
        with socket.socket(socket.AF_UNIX) as supervisor:
            supervisor.settimeout(_ANSWER_SECONDS)
            if len(os.fsencode(address)) > _LONGEST_ADDRESS:
                folder = os.open(os.path.dirname(address), os.O_RDONLY)
                address = f"/proc/self/fd/{folder}/{os.path.basename(address)}"
            supervisor.connect(address)
            passed = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", pipes))
            supervisor.sendmsg([f"rank{rank}".encode()], [passed])
            return supervisor.recv(1) == b"+"
    except OSError:
        return False
    finally:
        if folder >= 0:
            os.close(folder)


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else default


def _command_line() -> list[str] | None:
    original = getattr(sys, "orig_argv", None)
    if original:
        return list(original)
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return [os.fsdecode(part) for part in file.read().split(b"\0")[:-1]]
    except OSError:
        return None


def _main_program() -> str | None:
    """The script Python was told to run, or ``-m NAME``; "" for ``-c``; None where the command line is unknown."""
    arguments = _command_line()
    if arguments is None:
        return None
    rest = iter(arguments[1:])
    for argument in rest:
        if argument in _OPTIONS_WITH_VALUE:
            next(rest, None)
        elif argument.startswith("-m"):
            return "-m " + (argument[2:] or next(rest, ""))
        elif argument.startswith("-c"):
            return ""
        elif not argument.startswith("-"):
            return argument
    return ""


def _same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.abspath(one) == os.path.abspath(other)
