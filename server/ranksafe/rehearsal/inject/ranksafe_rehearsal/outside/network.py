"""Connections that leave the machine are refused at once and in clear words.

CPython raises an audit event before it connects, sends to an address or resolves a name, whichever library asks
(https://docs.python.org/3/library/audit_events.html), and an exception raised there ends the call. Libraries take it
for the ``OSError`` it is and fall back to their caches. Connections made in C++ (gloo, nccl) raise no such event; the
network namespace refuses those, where there is one.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
import sys
from typing import Any

from .. import journal, limits, provenance

_CONNECTING = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_RESOLVING = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})
_LOCAL_NAMES = frozenset(
    {"", "localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"}
)

_installed = False
_refused: set[str] = set()


class NoNetwork(OSError, limits.SimulationLimit):
    """Like an unreachable network, and a limit of the simulation."""


class NoNames(socket.gaierror, limits.SimulationLimit):
    """Like a name server that does not answer, and a limit of the simulation."""


def install() -> None:
    """Refuse from now on; an audit hook cannot be removed, so only once per process."""
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_watch)


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if not event.startswith("socket."):
        return
    if event in _CONNECTING:
        address = arguments[1]
        if isinstance(address, tuple) and address and not is_local(address[0]):
            raise NoNetwork(errno.ENETUNREACH, _refuse(as_text(address[0])))
    elif event in _RESOLVING and not is_local(arguments[0], resolved=False):
        raise NoNames(socket.EAI_AGAIN, _refuse(as_text(arguments[0])))


def is_local(host: Any, resolved: bool = True) -> bool:
    """Whether ``host`` is this machine. An address needs no resolving, so asking for one reveals nothing."""
    if host is None:
        return True
    if not isinstance(host, (str, bytes, bytearray)):
        return True  # a packet or netlink address: no way out through a name
    name = as_text(host).rstrip(".").lower()
    try:
        address = ipaddress.ip_address(name.split("%")[0])
    except ValueError:
        own = socket.gethostname().lower()
        return name in _LOCAL_NAMES or name == own or name.split(".")[0] == own or _is_node(name)
    mapped = getattr(address, "ipv4_mapped", None) or address
    return not resolved or mapped.is_loopback or mapped.is_unspecified


def _is_node(name: str) -> bool:
    """The simulated nodes are named ``node-0``, ``node-1`` and so on."""
    return name.startswith("node-") and name[5:].isdigit()


def as_text(host: Any) -> str:
    """A host as it is written, whichever type it was given as."""
    return host.decode("ascii", "replace") if isinstance(host, (bytes, bytearray)) else str(host)


def _refuse(host: str) -> str:
    """Write down, once per host, who was asked for."""
    english = f"there is no network in a rehearsal: {host} cannot be reached"
    message = {"en": english, "zh_cn": f"预演中没有网络：无法访问 {host}"}
    provenance.met("network", host, message)
    if host not in _refused:
        _refused.add(host)
        journal.write("unavailable", what=host, message=message, object="network")
    return limits.PREFIX + english
