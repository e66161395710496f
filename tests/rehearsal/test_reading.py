"""``--network read-only``: what speaks HTTP reads through a process outside, and nothing is sent."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ranksafe.rehearsal.isolation import EVENTS_FILE, plan_isolation
from ranksafe.rehearsal.settings import Isolation, Network, RehearsalOptions
from ranksafe.runs.model import Outcome, RunRequest
from ranksafe.runs.start import start_run

from .conftest import (
    STANDS_OUTSIDE,
    RehearsalEnvironment,
    needs_isolation,
    own_addresses,
    settings_without_devices,
)

LARGE = 3_000_000
CONFIGURATION = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "vocab_size": 32000,
}


class Site(ThreadingHTTPServer):
    """A server outside; ``asked`` holds each request's first line and headers."""

    daemon_threads = True

    def __init__(self, encrypted: ssl.SSLContext | None = None, address: str | None = None) -> None:
        super().__init__((address or own_addresses()[0], 0), _Page)
        self.asked: list[tuple[str, dict[str, str]]] = []
        if encrypted is not None:
            self.socket = encrypted.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def place(self) -> str:
        """Host and port."""
        return f"{self.server_address[0]!s}:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who asked has gone."""


class _Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Site

    def do_GET(self) -> None:
        self.server.asked.append((self.requestline, dict(self.headers.items())))
        path = self.path.split(".example", 1)[-1].split("?")[0]
        if path == "/closed":
            self._answer(401, b"who are you?")
        elif path == "/moved":
            self._answer(302, b"", Location="/large")
        elif path == "/elsewhere":
            self._answer(302, b"", Location=self.path.partition("?")[2])
        elif path == "/large":
            self._answer(200, b"x" * LARGE)
        elif path == "/chunks":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for _ in range(3):
                self.wfile.write(b"4\r\npart\r\n")
            self.wfile.write(b"0\r\n\r\n")
        elif path == "/someone/model/resolve/main/config.json":
            text = json.dumps(CONFIGURATION).encode()
            self._answer(200, text, **{"X-Repo-Commit": "a" * 40, "ETag": '"1"'})
        elif path == "/page":
            self._answer(200, b"a page")
        else:
            self._answer(404, b"", **{"X-Error-Code": "EntryNotFound"})

    do_HEAD = do_POST = do_GET  # noqa: N815 - the names that http.server looks for

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_of_the_message: Any) -> None:
        pass


@pytest.fixture
def site() -> Iterator[Site]:
    if not own_addresses():
        pytest.skip("this machine has no address but the loopback's")
    with Site() as running:
        yield running
        running.shutdown()


class Reading:
    """A folder from which programs are started that may read from the network."""

    def __init__(self, top: Path) -> None:
        self.run_directory = top / "run"
        self.run_directory.mkdir()
        self.top = top

    def run(
        self, code: str, environment: Mapping[str, str] | None = None, python: str = sys.executable
    ) -> list[str]:
        """What the program printed."""
        given = {**os.environ, "HOME": str(self.top), **(environment or {})}
        plan = plan_isolation(
            Isolation.REQUIRED,
            run_directory=self.run_directory,
            working_directory=self.top,
            environment=given,
            network=Network.READ_ONLY,
        )
        settings = settings_without_devices(
            self.run_directory, offline=plan.offline, reads_network=plan.reads_network
        )
        script = self.top / "script.py"
        script.write_text(STANDS_OUTSIDE + code)
        ended = subprocess.run(
            plan.wrap([python, str(script)]),
            env={**plan.changed(given), "RANKSAFE_REHEARSAL": str(settings)},
            cwd=self.top,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.splitlines()

    def events(self, kind: str) -> list[str]:
        """What the reader said."""
        text = (self.run_directory / EVENTS_FILE).read_text(encoding="utf-8")
        events = [json.loads(line) for line in text.splitlines()]
        assert all(each["message"]["zh_cn"] for each in events if "message" in each)
        return [each["message"]["en"] for each in events if each["event"] == kind]


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    needs_isolation()
    return Reading(tmp_path)


def test_it_reads(site: Site, reading: Reading) -> None:
    code = """
import http.client, socket, urllib.request
for path in ("page", "moved", "chunks"):
    answer = urllib.request.urlopen(f"http://{place}/{path}", timeout=60)
    print(answer.status, len(answer.read()))
connection = http.client.HTTPConnection(place, timeout=60)
for method in ("HEAD", "GET"):
    connection.request(method, "/page?of=two", headers={"Authorization": "secret", "Cookie": "secret", "Range": "bytes=1-"})
    answer = connection.getresponse()
    print(answer.status, answer.headers["Content-Length"], answer.read())
host, port = place.split(":")
with socket.socket() as plain:
    print(plain.connect_ex((host, int(port))))
    plain.sendall(b"GET /page HTTP/1.0\\r\\n\\r\\n")
    print(plain.makefile("rb").read()[-6:])
"""
    assert reading.run(f"place = {site.place!r}" + code) == [
        "200 6",
        f"200 {LARGE}",
        "200 12",
        "200 6 b''",
        "200 6 b'a page'",
        "0",
        "b'a page'",
    ]
    _, headers = site.asked[-2]
    assert headers["Range"] == "bytes=1-"
    assert "secret" not in str(site.asked)
    assert reading.events("modified") == [f"read over the network: {own_addresses()[0]}"]


def test_a_name_is_the_proxys_to_know(site: Site, reading: Reading) -> None:
    code = """
import socket, urllib.request
print(socket.gethostbyname("models.example") == socket.gethostbyname("models.example"))
print(urllib.request.urlopen("http://models.example/page").read())
"""
    proxy = {"http_proxy": f"http://{site.place}", "no_proxy": ""}
    assert reading.run(code, proxy) == ["True", "b'a page'"]
    assert site.asked[0][0] == "GET http://models.example/page HTTP/1.1"


def test_nothing_is_sent(site: Site, reading: Reading) -> None:
    code = """
import socket, urllib.error, urllib.request
asked = urllib.request.Request
for request in (
    asked(f"http://{place}/page", data=b"weights"),
    asked(f"http://{place}/page", data=b"weights", method="GET"),
    asked(f"http://{place}/page?{'x' * 9000}"),
    asked("http://169.254.169.254/latest/meta-data"),
    asked(f"http://{place}/closed", headers={"Authorization": "Bearer secret"}),
):
    try:
        print(urllib.request.urlopen(request, timeout=60).status)
    except urllib.error.HTTPError as error:
        print(error.code, error.reason.split(":")[0])
with socket.create_connection(place.split(":")) as sending:
    sending.sendall(b"weights\\r\\n\\r\\n")
    print(sending.recv(100).split()[1])
try:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("198.51.100.7", 8125))
except OSError as error:
    print(type(error).__name__)
"""
    refused = "403 ranksafe simulation limit"
    lines = reading.run(f"place = {site.place!r}" + code)
    assert lines == [*[refused] * 5, "b'403'", "NoNetwork"]
    assert [first for first, _ in site.asked] == ["GET /closed HTTP/1.1"]
    only_reads = "a rehearsal only reads from the network, with GET and HEAD of HTTP"
    assert [each.split(":")[0] for each in reading.events("limit")] == [
        only_reads,
        only_reads,
        "a rehearsal only reads from the network",
        "a rehearsal reads from the network, not from 169.254.169.254",
        f"{own_addresses()[0]} wants to know who asks, and a rehearsal sends no token",
        only_reads,
    ]


def test_nobody_outside_leads_the_reader_to_this_machine(site: Site, reading: Reading) -> None:
    with Site(address="127.0.0.1") as private:
        code = f"""
import json, pathlib, socket, urllib.request
try:
    print(urllib.request.urlopen("http://{site.place}/elsewhere?http://{private.place}/page").read())
except OSError as error:
    print(error.reason.errno)
reader = json.loads(pathlib.Path({str(reading.run_directory)!r}, "rehearsal-network.json").read_text())
with socket.create_connection(("127.0.0.1", reader["port"])) as asking:
    asking.sendall(b"TO {private.place.replace(":", " ")}\\nGET /page HTTP/1.1\\r\\nHost: site\\r\\n\\r\\n")
    print(asking.recv(100).split()[1])
"""
        # The rehearsal's own 127.0.0.1 is asked, where nobody listens; the reader itself asks none.
        assert reading.run(code) == ["111", "b'403'"]
        assert not private.asked
        private.shutdown()


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Of this machine's address, with its key in the same file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate with")
    file = tmp_path / "certificate.pem"
    words = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=site -addext subjectAltName=IP:{own_addresses()[0]}"
    command = [openssl, *words.split(), "-keyout", str(file), "-out", str(tmp_path / "only")]
    subprocess.run(command, check=True, capture_output=True)
    with file.open("a") as whole:
        whole.write((tmp_path / "only").read_text())
    return file


def test_encrypted_connections_are_the_readers(certificate: Path, reading: Reading) -> None:
    code = """
import asyncio, http.client, ssl, urllib.request
print(urllib.request.urlopen(f"https://{place}/page", timeout=60).read())
connection = http.client.HTTPSConnection(place, timeout=60)
for _ in range(2):
    connection.request("GET", "/large")
    print(len(connection.getresponse().read()))

async def read():
    host, port = place.split(":")
    reader, writer = await asyncio.open_connection(host, port, ssl=ssl.create_default_context())
    writer.write(f"GET /page HTTP/1.1\\r\\nHost: {place}\\r\\nConnection: close\\r\\n\\r\\n".encode())
    print((await reader.read())[-6:])
    writer.close()

asyncio.run(read())
"""
    encrypted = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    encrypted.load_cert_chain(certificate)
    with Site(encrypted) as site:
        trusted = {"SSL_CERT_FILE": str(certificate)}
        lines = reading.run(f"place = {site.place!r}" + code, trusted)
        assert lines == ["b'a page'", str(LARGE), str(LARGE), "b'a page'"]
        # Whoever answers with a certificate that nobody vouches for is not read from.
        asked = len(site.asked)
        unknown = f"import urllib.request\ntry: urllib.request.urlopen('https://{site.place}/page')\nexcept OSError as error: print(error.code)"
        assert reading.run(unknown, {"SSL_CERT_FILE": ""}) == ["502"]
        assert len(site.asked) == asked
        site.shutdown()


CLIENTS = """
import asyncio
import aiohttp, httpx, requests
for address in addresses:
    session = requests.Session()
    print(session.get(address + "page").content, len(session.get(address + "moved").content))
    with httpx.Client() as client:
        print(client.get(address + "page").content, len(client.get(address + "large").content))

    async def read():
        async with httpx.AsyncClient() as client:
            print((await client.get(address + "page")).content)
        async with aiohttp.ClientSession() as session, session.get(address + "chunks") as answer:
            print(await answer.read())

    asyncio.run(read())
    answer = requests.post(address + "page", data=b"weights")
    print(answer.status_code, answer.reason.split(":")[0])
"""


@pytest.mark.long
def test_each_client_reads(certificate: Path, reading: Reading, site: Site) -> None:
    """The three that training libraries use, as their users install them."""
    subprocess.run([sys.executable, "-m", "venv", reading.top / "clients"], check=True)
    python = str(reading.top / "clients" / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "requests", "httpx", "aiohttp"]
    subprocess.run(install, check=True, capture_output=True, timeout=600)
    encrypted = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    encrypted.load_cert_chain(certificate)
    with Site(encrypted) as other:
        addresses = [f"http://{site.place}/", f"https://{other.place}/"]
        trusted = {"SSL_CERT_FILE": str(certificate)}
        lines = reading.run(f"addresses = {addresses}" + CLIENTS, trusted, python)
        other.shutdown()
    both = f"b'a page' {LARGE}"
    expected = [both, both, "b'a page'", "b'partpartpart'", "403 ranksafe simulation limit"]
    assert lines == expected * 2


def test_the_reader_ends_with_the_run(site: Site, reading: Reading) -> None:
    reading.run(f"import urllib.request as r; r.urlopen('http://{site.place}/page').read()")
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(reading.run_directory) not in listed.stdout


def test_what_was_not_sent_is_a_limit(
    site: Site, tmp_path: Path, rehearsal_environment: RehearsalEnvironment
) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import urllib.request, torch\n"
        f"urllib.request.urlopen('http://{site.place}/page', data=b'metrics')\n"
    )
    request = RunRequest(
        script,
        "simulated:1",
        interpreter=rehearsal_environment.interpreter,
        working_directory=tmp_path,
        launcher="python",
        timeout_seconds=240.0,
        rehearsal=RehearsalOptions(isolation=Isolation.REQUIRED, network=Network.READ_ONLY),
    )
    result = start_run(request, lambda _event: None).wait()
    assert result is not None
    assert result.outcome is Outcome.SIMULATION_LIMIT
    limit = result.simulation_limit
    assert limit is not None
    assert limit.line == 2
    assert "nothing is sent, tokens included" in str(limit.explanation)


def test_a_models_configuration_is_fetched_and_its_weights_are_not(
    site: Site, tmp_path: Path, rehearsal_environment: RehearsalEnvironment
) -> None:
    """A model that is neither on disk nor known by its name is made small from what the hub says of it."""
    script = tmp_path / "train.py"
    script.write_text(
        "from transformers import AutoModelForCausalLM\n"
        "model = AutoModelForCausalLM.from_pretrained('someone/model')\n"
        "print(type(model).__name__, model.config.vocab_size)\n"
    )
    request = RunRequest(
        script,
        "simulated:1",
        interpreter=rehearsal_environment.interpreter,
        working_directory=tmp_path,
        environment={"HF_HOME": str(tmp_path / "hub"), "HF_ENDPOINT": f"http://{site.place}"},
        launcher="python",
        timeout_seconds=240.0,
        rehearsal=RehearsalOptions(isolation=Isolation.REQUIRED, network=Network.READ_ONLY),
    )
    output: list[str] = []
    result = start_run(request, lambda event: output.extend(event.text.splitlines())).wait()
    assert result is not None
    assert result.outcome is Outcome.SUCCEEDED, (result.failures, result.simulation_limit, output)
    assert any(line.startswith("LlamaForCausalLM") for line in output)
    assert any(each.startswith("model someone/model → ") for each in result.modified)
    assert f"read over the network: {own_addresses()[0]}" in result.modified
    assert not any("safetensors" in first for first, _ in site.asked)
