"""Takes a fork of the template into the namespaces of a run, where it is a child of their first process.

The fork enters them all (``setns``, Linux 3.8) and forks twice: a process is never in another process namespace itself,
only its children are, and the child of a child that has ended belongs to the first process of its namespace.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import socket
import struct
from collections.abc import Sequence
from typing import Any

from . import messages

_NAMESPACES = (0x10000000, 0x40000000, 0x04000000, 0x08000000, 0x20000000, 0x00020000)
"""``CLONE_NEW*`` for users, network, host name, IPC, processes and, last, mounts: in this order their files come."""
_SET_DUMPABLE = 4
_DROP_BOUNDING_CAPABILITY = 24
_SET_NO_NEW_PRIVILEGES = 38
_CAPABILITY_VERSION = 0x20080522
_library = ctypes.CDLL(None, use_errno=True)


def enter(connection: socket.socket, request: dict[str, Any], files: Sequence[int]) -> None:
    """Returns in the process that is to become the command; every other ends here. Raises OSError."""
    _take_over(request)
    for number, kind in zip(files[3:], _NAMESPACES):
        _checked(_library.setns(number, kind))
    reader, writer = os.pipe()
    middle = os.fork()
    if middle == 0:
        process = os.fork()
        if process == 0:
            os.close(reader)
            os.close(writer)
            _settle(connection, request, files)
            return
        os.write(writer, str(process).encode())
        os._exit(0)
    os.waitpid(middle, 0)
    messages.send(connection, {"process": int(os.read(reader, 20))})
    os._exit(0)


def _take_over(request: dict[str, Any]) -> None:
    """What children inherit besides the namespaces."""
    for number, limits in request["limits"].items():
        resource.setrlimit(int(number), tuple(limits))
    os.setpriority(os.PRIO_PROCESS, 0, request["nice"])
    os.umask(request["umask"])
    os.sched_setaffinity(0, request["processors"])
    with (
        contextlib.suppress(OSError),
        open("/proc/self/oom_score_adj", "w", encoding="ascii") as file,
    ):
        file.write(request["ended_first"])


def _settle(connection: socket.socket, request: dict[str, Any], files: Sequence[int]) -> None:
    """Be what a process would be that the first process of the namespaces had started."""
    # Who asked may have given up meanwhile and started the command itself.
    if not connection.recv(1):
        os._exit(0)
    os.setsid()
    for target, number in enumerate(files[:3]):
        os.dup2(number, target)
    for number in files:
        os.close(number)
    os.chdir(request["directory"])
    _give_up_power(request["capabilities"])
    default_signals()


def default_signals() -> None:
    """As Python sets them when it starts."""
    for number in (*range(1, signal.SIGSYS + 1),):
        if number in (
            signal.SIGKILL,
            signal.SIGSTOP,
            signal.SIGINT,
            signal.SIGPIPE,
            signal.SIGXFSZ,
        ):
            continue
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _give_up_power(kept: Sequence[int]) -> None:
    """What ``exec`` would leave: root those capabilities that are kept, everybody else none."""
    zero = ctypes.c_ulong(0)
    for capability in range(64):
        if capability not in kept:
            _library.prctl(_DROP_BOUNDING_CAPABILITY, ctypes.c_ulong(capability), zero, zero, zero)
    _checked(_library.prctl(_SET_NO_NEW_PRIVILEGES, ctypes.c_ulong(1), zero, zero, zero))
    mask = sum(1 << capability for capability in kept) if os.geteuid() == 0 else 0
    low, high = mask & 0xFFFFFFFF, mask >> 32
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    _checked(_library.capset(header, struct.pack("6I", low, low, 0, high, high, 0)))
    _library.prctl(_SET_DUMPABLE, ctypes.c_ulong(1), zero, zero, zero)


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
