"""What a rehearsal may read of the network: a process outside asks in its place, and only with GET and HEAD.

Started before the namespaces are entered, it takes connections at a loopback port that is inside of them. Who connects
says in a line where to (``TO host port``), for an encrypted connection in a second one (``TLS host``), and goes on in
plain HTTP; the encrypted connection is ours. Neither bodies nor credentials leave the machine.
"""

# Files as the kernel sees them, call by call: pathlib would only hide which calls are made.
# ruff: noqa: PTH118, PTH123

from __future__ import annotations

import contextlib
import http
import http.client
import ipaddress
import json
import os
import signal
import socket
import socketserver
import urllib.error
import urllib.request
from email.message import Message
from http.server import BaseHTTPRequestHandler
from typing import Any, NoReturn

from ranksafe.localization import Translated
from ranksafe.rehearsal.isolation import kernel
from ranksafe.rehearsal.isolation.events import EventBook
from ranksafe.rehearsal.isolation.first_process import PASSED_ON
from ranksafe.rehearsal.settings import LIMIT_PREFIX

PORT_FILE = "rehearsal-network.json"
"""In the run's folder: ``port``, where the reader listens."""
_LONGEST_PATH = 8192
"""Characters: signed addresses of stored files have some 2,000, and a longer one could carry data away."""
_PATIENCE_SECONDS = 60.0
_CHUNK_BYTES = 1 << 16
_CREDENTIALS = frozenset({"authorization", "cookie", "proxy-authorization"})
_OF_ONE_CONNECTION = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-connection", "te", "trailer"),
        *("trailers", "transfer-encoding", "upgrade"),
    }
)
"""RFC 9110, 7.6.1: these headers concern one connection and are not passed on."""


class Reader:
    """The process outside, waiting to be told where to listen."""

    def __init__(self, run_directory: str, book: EventBook) -> None:
        """Start it. Raises OSError."""
        self._run_directory = run_directory
        self._given, taken = socket.socketpair()
        process = os.fork()
        if process == 0:
            self._given.close()
            _serve(taken, book)
        taken.close()

    def listen(self) -> None:
        """Let it answer where this process is: in its network, to those who can read the run's folder. Raises
        OSError."""
        with socket.socket() as listening, self._given:
            listening.bind(("127.0.0.1", 0))
            listening.listen(64)
            socket.send_fds(self._given, [b"\n"], [listening.fileno()])
            path = os.path.join(self._run_directory, PORT_FILE)
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"port": listening.getsockname()[1]}, file)


def _serve(taken: socket.socket, book: EventBook) -> NoReturn:
    """Answer until the process that started us ends."""
    try:
        for number in PASSED_ON:
            signal.signal(number, signal.SIG_IGN)  # for the run: it decides what to do
        kernel.die_with_parent(signal.SIGKILL)
        _, files, _, _ = socket.recv_fds(taken, 1, 1)
        if files:
            _Server(socket.socket(fileno=files[0]), book).serve_forever()
    finally:
        os._exit(0)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, listening: socket.socket, book: EventBook) -> None:
        socketserver.BaseServer.__init__(self, listening.getsockname(), _Request)
        self.socket = listening
        self.opener = urllib.request.build_opener(_NoRedirects)
        self._book = book
        self._hosts: set[str] = set()

    def read_from(self, host: str) -> None:
        """Say so, once per host."""
        if host not in self._hosts:
            self._hosts.add(host)
            self._book.modified("network", _READ.filled(host=host))

    def refused(self, host: str, reason: Translated) -> None:
        """Name it among what the rehearsal could not do."""
        self._book.limit("only-read", host, reason)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who asked has gone: nothing to say."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Who asked follows them; each is a request of its own."""

    def redirect_request(self, *_of_the_redirect: Any) -> None:
        return None


class _Request(BaseHTTPRequestHandler):
    """One connection, of any number of requests."""

    protocol_version = "HTTP/1.1"
    server: _Server
    raw_requestline: bytes
    timeout = 600.0

    def handle(self) -> None:
        words = self.rfile.readline(1024).decode("ascii", "replace").split()
        if len(words) == 3 and words[0] == "TO" and words[2].isdigit():
            self._host, self._port, self._scheme = words[1], int(words[2]), "http"
            super().handle()

    def parse_request(self) -> bool:
        if self.raw_requestline.startswith(b"TLS "):
            words = self.raw_requestline.decode("ascii", "replace").split()
            self._scheme, self._host = "https", words[-1] if len(words) == 2 else self._host
            self.raw_requestline = self.rfile.readline(1 << 16)
        return super().parse_request()

    def do_GET(self) -> None:
        """GET and HEAD: ask in the place of who asked us."""
        if len(self.path) > _LONGEST_PATH or not self.path.startswith("/"):
            self._refuse(_TOO_LONG.filled(host=self._host))
        elif self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
            self._refuse(_ONLY_READS.filled(method=self.command, host=self._host))
        elif not _is_public(self._host):
            self._refuse(_NOT_PUBLIC.filled(host=self._host))
        else:
            self._ask()

    do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is neither GET nor HEAD, or no HTTP at all."""
        del code, message, explain
        self._refuse(_ONLY_READS.filled(method=self.command or "?", host=self._host))

    def _ask(self) -> None:
        kept = {
            name: value
            for name, value in self.headers.items()
            if name.lower() not in _CREDENTIALS | _OF_ONE_CONNECTION | {"host"}
        }
        port = "" if self._port == (443 if self._scheme == "https" else 80) else f":{self._port}"
        host = f"[{self._host}]" if ":" in self._host else self._host
        asked = urllib.request.Request(
            f"{self._scheme}://{host}{port}{self.path}", headers=kept, method=self.command
        )
        try:
            answer = self.server.opener.open(asked, timeout=_PATIENCE_SECONDS)
        except urllib.error.HTTPError as error:
            answer = error
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._say(http.HTTPStatus.BAD_GATEWAY, f"{self._host} cannot be read from: {error}")
            return
        with answer:
            if answer.status in (401, 403) and any(each in self.headers for each in _CREDENTIALS):
                self._refuse(_NO_CREDENTIALS.filled(host=self._host))
                return
            self.server.read_from(self._host)
            self._pass_on(answer)

    def _pass_on(self, answer: http.client.HTTPResponse | urllib.error.HTTPError) -> None:
        headers: Message = answer.headers
        self.send_response_only(answer.status or 502, answer.reason)
        for name, value in headers.items():
            if name.lower() not in _OF_ONE_CONNECTION:
                self.send_header(name, value)
        has_body = self.command != "HEAD" and answer.status not in (204, 304)
        in_chunks = has_body and "Content-Length" not in headers
        if in_chunks:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while has_body and (data := answer.read(_CHUNK_BYTES)):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data) if in_chunks else data)
        if in_chunks:
            self.wfile.write(b"0\r\n\r\n")

    def _refuse(self, reason: Translated) -> None:
        self.server.refused(self._host, reason)
        self._say(http.HTTPStatus.FORBIDDEN, LIMIT_PREFIX + reason.en)

    def _say(self, status: http.HTTPStatus, text: str) -> None:
        """An answer of our own; huggingface_hub shows what the header says (2.4.0, ``utils/_http.py``)."""
        line = " ".join(text.split())[:400].encode("ascii", "replace").decode()
        self.close_connection = True
        self.request_version = self.protocol_version
        self.send_response_only(status, line)
        self.send_header("X-Error-Message", line)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, *_of_the_message: Any) -> None:
        """The run's output is the script's."""


def _is_public(host: str) -> bool:
    """Whether neither the name nor what it stands for is this machine or a service of its cloud (link-local).

    A name that cannot be resolved here may be known to a proxy.
    """
    addresses = [host]
    with contextlib.suppress(OSError, UnicodeError):
        addresses = [str(each[4][0]) for each in socket.getaddrinfo(host, None)]
    for address in addresses:
        with contextlib.suppress(ValueError):
            known = ipaddress.ip_address(address.split("%")[0])
            known = getattr(known, "ipv4_mapped", None) or known
            if known.is_loopback or known.is_link_local or known.is_unspecified:
                return False
    return True


_READ = Translated(en="read over the network: {host}", zh_cn="通过网络读取了：{host}")
_ONLY_READS = Translated(
    en="a rehearsal only reads from the network, with GET and HEAD of HTTP: nothing else was sent to {host} ({method})",
    zh_cn="预演只通过 HTTP 的 GET 和 HEAD 从网络读取：没有向 {host} 发送其他内容（{method}）",
)
_TOO_LONG = Translated(
    en="a rehearsal only reads from the network: a request to {host} was too long to be one that reads",
    zh_cn="预演只从网络读取：发往 {host} 的一个请求过长，不像是读取",
)
_NOT_PUBLIC = Translated(
    en="a rehearsal reads from the network, not from {host}: that is this machine, or a service of its cloud",
    zh_cn="预演可从网络读取，但 {host} 是本机或其云平台的内部服务",
)
_NO_CREDENTIALS = Translated(
    en="{host} wants to know who asks, and a rehearsal sends no token: download the file beforehand",
    zh_cn="{host} 要求验证身份，而预演不会发送令牌：请事先下载该文件",
)
