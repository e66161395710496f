"""Connections that leave the machine end at the isolation's reader, which asks in our place and sends nothing.

Names get addresses of a range that is nobody's (198.18.0.0/15, RFC 2544), a connection to one of them goes to the
reader with a line that says where to, and encryption is left to it (``ranksafe.rehearsal.isolation.reader``). So
whatever speaks HTTP in Python reads: ``urllib``, ``requests``, ``httpx``, ``aiohttp``. Anything else is refused, by
``network`` or by the reader.
"""

from __future__ import annotations

import functools
import ipaddress
import json
import os
import socket
import ssl
from typing import Any

from .. import settings
from . import network

PORT_FILE = "rehearsal-network.json"
_FIRST_ADDRESS = int(ipaddress.IPv4Address("198.18.0.1"))
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")

_installed = False
_names: dict[str, str] = {}
"""The host that an address of ours stands for."""


def install() -> None:
    """Replace what resolves, connects and encrypts, once per process."""
    global _installed
    if _installed:
        return
    _installed = True
    for name in [each for each in os.environ if each.lower() in _PROXIES]:
        del os.environ[name]  # the reader has them
    _replace(socket, "getaddrinfo", _resolve)
    _replace(socket, "gethostbyname", _address)
    _replace(socket.socket, "connect", _connect)
    _replace(socket.socket, "connect_ex", _connect_ex)
    _replace(ssl.SSLContext, "wrap_socket", _wrap_socket)
    _replace(ssl.SSLContext, "wrap_bio", _wrap_bio)


def _replace(owner: Any, name: str, instead: Any) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def replaced(*arguments: Any, **keywords: Any) -> Any:
        return instead(original, *arguments, **keywords)

    setattr(owner, name, replaced)


def _resolve(original: Any, host: Any, port: Any, *arguments: Any, **keywords: Any) -> Any:
    """``socket.getaddrinfo``."""
    if network.is_local(host, resolved=False):
        return original(host, port, *arguments, **keywords)
    # What the family, kind and protocol that are asked for allow is said for an address as it would be for the name.
    keywords.pop("family", None)
    return original(_stands_for(host), port, socket.AF_INET, *arguments[1:], **keywords)


def _address(original: Any, host: Any) -> Any:
    """``socket.gethostbyname``."""
    return original(host) if network.is_local(host, resolved=False) else _stands_for(host)


def _stands_for(host: Any) -> str:
    name = network.as_text(host)
    for address, known in _names.items():
        if known == name:
            return address
    address = str(ipaddress.IPv4Address(_FIRST_ADDRESS + len(_names)))
    _names[address] = name
    return address


def _connect(original: Any, connecting: socket.socket, address: Any) -> Any:
    """``socket.socket.connect``; in the namespace the reader's port is of this machine, so nobody has to wait."""
    port = None if _stays(connecting, address) else _readers_port()
    if port is None:
        return original(connecting, address)
    patience = connecting.gettimeout()
    connecting.settimeout(None)
    try:
        original(connecting, ("127.0.0.1", port))
        host = _names.get(address[0], address[0])
        connecting.sendall("TO {} {}\n".format(host, address[1]).encode("ascii", "replace"))
    finally:
        connecting.settimeout(patience)
    return None


def _connect_ex(original: Any, connecting: socket.socket, address: Any) -> Any:
    if _stays(connecting, address):
        return original(connecting, address)
    try:
        connecting.connect(address)
    except OSError as error:
        return error.errno
    return 0


def _stays(connecting: socket.socket, address: Any) -> bool:
    """Whether a connection is none that the reader could take: to this machine, or no stream over IPv4."""
    return (
        connecting.family != socket.AF_INET
        or connecting.type & socket.SOCK_STREAM == 0
        or not isinstance(address, tuple)
        or network.is_local(address[0])
    )


def _readers_port() -> int | None:
    """Read again for each connection: a process that was kept ready belongs to another run by now."""
    chosen = settings.current()
    try:
        with open(os.path.join(chosen.run_directory, PORT_FILE), encoding="utf-8") as file:  # type: ignore[union-attr]
            return int(json.load(file)["port"])
    except (OSError, ValueError, KeyError, AttributeError):
        return None


def _goes_to_reader(connected: Any) -> bool:
    try:
        peer = connected.getpeername()
    except OSError:
        return False
    return isinstance(peer, tuple) and peer[:2] == ("127.0.0.1", _readers_port())


def _tls_line(host: Any) -> bytes:
    return "TLS {}\n".format(network.as_text(host or "")).encode("ascii", "replace")


class _NoCertificate:
    """What is asked of an encrypted connection: the reader has checked the certificate."""

    context: Any = None
    server_side = False
    server_hostname: Any = None
    session = None
    session_reused = False

    def getpeercert(self, binary_form: bool = False) -> Any:
        return b"" if binary_form else {}

    def selected_alpn_protocol(self, *_arguments: Any) -> None:
        return None

    selected_npn_protocol = compression = cipher = shared_ciphers = selected_alpn_protocol
    get_channel_binding = selected_alpn_protocol

    def version(self) -> str:
        return "TLSv1.3"

    def do_handshake(self, *_arguments: Any) -> None:
        pass


class _PlainSocket(_NoCertificate, socket.socket):
    """Stands where an encrypted socket would."""

    def unwrap(self) -> socket.socket:
        return self

    def pending(self) -> int:
        return 0


def _wrap_socket(original: Any, context: Any, sock: Any, *arguments: Any, **keywords: Any) -> Any:
    """``ssl.SSLContext.wrap_socket``."""
    if not isinstance(sock, socket.socket) or not _goes_to_reader(sock):
        return original(context, sock, *arguments, **keywords)
    host = keywords.get("server_hostname") or (arguments[3] if len(arguments) > 3 else None)
    patience = sock.gettimeout()
    plain = _PlainSocket(sock.family, sock.type, sock.proto, sock.detach())
    plain.settimeout(None)
    plain.sendall(_tls_line(host))
    plain.settimeout(patience)
    plain.context, plain.server_hostname = context, host
    return plain


class _PlainObject(_NoCertificate):
    """Stands where asyncio encrypts from one buffer into another."""

    def __init__(self, incoming: Any, outgoing: Any) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._has_greeted = False

    def do_handshake(self) -> None:
        if not self._has_greeted:
            self._has_greeted = True
            self._outgoing.write(_tls_line(self.server_hostname))

    def read(self, length: int = 1024, buffer: Any = None) -> Any:
        data = self._incoming.read(length if buffer is None else min(length, len(buffer)))
        if not data and not self._incoming.eof:
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "there is nothing to read yet")
        if buffer is None:
            return data
        buffer[: len(data)] = data
        return len(data)

    def write(self, data: Any) -> int:
        return int(self._outgoing.write(data))

    def pending(self) -> int:
        return int(self._incoming.pending)

    def unwrap(self) -> None:
        return None


def _wrap_bio(
    original: Any, context: Any, incoming: Any, outgoing: Any, *arguments: Any, **keywords: Any
) -> Any:
    """``ssl.SSLContext.wrap_bio``: it does not say of which connection, but names whom it talks to."""
    host = keywords.get("server_hostname") or (arguments[1] if len(arguments) > 1 else None)
    if host is None or network.is_local(host):
        return original(context, incoming, outgoing, *arguments, **keywords)
    plain = _PlainObject(incoming, outgoing)
    plain.context, plain.server_hostname = context, host
    return plain
