"""Gives the processes of a simulated node a host name: ``python node.py INDEX COMMAND…``.

Standard library only, CPython 3.9 or newer: it may be run by any interpreter, inside the isolation or outside. Where
the system allows no namespaces, the command is started all the same, under the machine's own name.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

_NEW_HOST_NAME = 0x04000000
_NEW_USERS = 0x10000000


def node_name(index: int) -> str:
    """The host name of the node ``index``, from 0. Leads to the loopback address inside an isolation."""
    return f"node-{index}"


def on_node(index: int, command: Sequence[str]) -> tuple[str, ...]:
    """The command that starts ``command`` under the host name of the node ``index``."""
    return (sys.executable, "-I", str(Path(__file__).resolve()), str(index), *command)


def main(arguments: Sequence[str]) -> int:
    """Become the command; returns only where it is used wrongly. Raises OSError when there is no such command."""
    if len(arguments) < 2:
        print("usage: node.py INDEX COMMAND...", file=sys.stderr)
        return 2
    with contextlib.suppress(OSError, AttributeError):
        _rename(node_name(int(arguments[0])))
    os.execvp(arguments[1], list(arguments[1:]))
    return 127


def _rename(name: str) -> None:
    user, group = os.geteuid(), os.getegid()
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_USERS | _NEW_HOST_NAME) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    for file, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1\n"),
        ("gid_map", f"{group} {group} 1\n"),
    ):
        Path("/proc/self", file).write_text(text)
    socket.sethostname(name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
