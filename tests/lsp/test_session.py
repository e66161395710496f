"""A session from its first message to its last."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time

import pytest
from ranksafe import __version__
from ranksafe.lsp.transport import MessageSplitter

from .conftest import DEVICE_MAP, StartEditor, server_environment


async def test_the_server_says_who_it_is(start_editor: StartEditor) -> None:
    editor = await start_editor()
    info = editor.answer.server_info
    assert info is not None
    assert (info.name, info.version) == ("ranksafe", __version__)


async def test_the_command_line_starts_the_server(start_editor: StartEditor) -> None:
    run = "from ranksafe.cli.main import run_command_line; run_command_line()"
    editor = await start_editor(command=(sys.executable, "-c", run, "lsp"))
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")


def test_the_server_ends_when_the_client_says_so() -> None:
    messages = [
        _request(1, "initialize", {"capabilities": {}, "processId": None, "rootUri": None}),
        _notification("initialized", {}),
        _request(2, "shutdown", None),
        _notification("exit", None),
    ]
    process = _serve(b"".join(messages))
    assert process.returncode == 0
    assert b'"serverInfo"' in process.stdout


def test_the_server_ends_when_the_client_goes_away() -> None:
    process = _serve(
        _request(1, "initialize", {"capabilities": {}, "processId": None, "rootUri": None})
    )
    assert b'"serverInfo"' in process.stdout


def test_nonsense_between_messages_does_not_end_the_session() -> None:
    messages = [
        b"Content-Length: 5\r\n\r\nhello",
        b"Nonsense: yes\r\n\r\n",
        _request(1, "initialize", {"capabilities": {}, "processId": None, "rootUri": None}),
        _request(2, "ranksafe/noSuchRequest", {}),
        _request(3, "shutdown", None),
        _notification("exit", None),
    ]
    process = _serve(b"".join(messages))
    assert process.returncode == 0
    assert b'"id": 3' in process.stdout


async def test_start_imports_neither_runs_nor_fixes_nor_training_libraries() -> None:
    code = (
        "import sys; from ranksafe.lsp.server import create_server; create_server();"
        "print([n for n in sys.modules if n.split('.')[0] in ('torch', 'transformers', 'libcst',"
        " 'yaml') or n.startswith(('ranksafe.runs.', 'ranksafe.fixes.', 'ranksafe_rules'))])"
    )
    process = subprocess.run(
        [sys.executable, "-c", code],
        env=server_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.strip() == "[]"


async def test_over_tcp_for_debugging() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    run = "from ranksafe.cli.main import run_command_line; run_command_line()"
    process = subprocess.Popen(
        [sys.executable, "-c", run, "lsp", "--tcp", f"127.0.0.1:{port}"], env=server_environment()
    )
    try:
        reader, writer = await _connect(port)
        writer.write(
            _request(1, "initialize", {"capabilities": {}, "processId": None, "rootUri": None})
        )
        header = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
        assert b"Content-Length" in header
        writer.close()
    finally:
        process.terminate()
        process.wait()


def test_messages_are_cut_wherever_the_bytes_break() -> None:
    stream = _notification("a", {"text": "中🤗"}) + _notification("b", None)
    whole = list(MessageSplitter().feed(stream))
    splitter = MessageSplitter()
    single = [body for byte in stream for body in splitter.feed(bytes([byte]))]
    assert single == whole
    assert [json.loads(body)["method"] for body in whole] == ["a", "b"]


@pytest.mark.parametrize("name", ["content-length", "Content-Length", "CONTENT-LENGTH"])
def test_header_names_have_no_case_and_may_come_in_any_order(name: str) -> None:
    stream = f"Content-Type: application/json\r\n{name}: 2\r\n\r\n{{}}".encode()
    assert list(MessageSplitter().feed(stream)) == [b"{}"]


async def _connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    deadline = time.monotonic() + 60
    while True:
        try:
            return await asyncio.open_connection("127.0.0.1", port)
        except ConnectionError:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)


def _serve(data: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "ranksafe.lsp"],
        input=data,
        env=server_environment() | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=60,
        check=False,
        cwd=os.getcwd(),
    )


def _request(number: int, method: str, params: object) -> bytes:
    return _message({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def _notification(method: str, params: object) -> bytes:
    return _message({"jsonrpc": "2.0", "method": method, "params": params})


def _message(value: object) -> bytes:
    body = json.dumps(value, ensure_ascii=False).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body
