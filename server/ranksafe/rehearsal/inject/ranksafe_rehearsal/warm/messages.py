"""JSON objects over a Unix socket, one per line, with open files beside them; never anything that is executed."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Sequence
from typing import Any

_MOST_BYTES = 4 << 20
_MOST_FILES = 16


def send(connection: socket.socket, message: Any, files: Sequence[int] = ()) -> None:
    """Send a message. Raises OSError."""
    data = json.dumps(message).encode() + b"\n"
    sent = socket.send_fds(connection, [data], files) if files else 0
    connection.sendall(data[sent:])


def receive(connection: socket.socket) -> tuple[Any, list[int]] | None:
    """The next message and its files; None at the end. Raises OSError, ValueError."""
    data, files, _, _ = socket.recv_fds(connection, 1 << 16, _MOST_FILES)
    while not data.endswith(b"\n"):
        more = connection.recv(1 << 16)
        if not more or len(data) > _MOST_BYTES:
            for each in files:
                os.close(each)
            return None
        data += more
    return json.loads(data), list(files)


def is_own(connection: socket.socket) -> bool:
    """Whether the other side belongs to this user."""
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", peer)[1] == os.geteuid()
