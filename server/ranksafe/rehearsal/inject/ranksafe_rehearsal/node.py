"""Each simulated node has a host name of its own."""

from __future__ import annotations

import platform
import socket

from .settings import Settings


def host_name(node: int) -> str:
    """What ``hostname`` would print on the node."""
    return f"node-{node}"


def install(settings: Settings) -> None:
    """Give this process the host name of its node where several are simulated."""
    name = host_name(settings.node)
    if settings.nodes < 2 or socket.gethostname() == name:
        return
    socket.gethostname = lambda: name
    platform.node = lambda: name
