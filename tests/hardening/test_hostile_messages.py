"""Promise: whatever a client sends, the server answers what can be answered and ends with its input."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.hardening.measured import environment

WARNED = """\
from accelerate import Accelerator
from transformers import AutoModelForCausalLM

accelerator = Accelerator()
model = AutoModelForCausalLM.from_pretrained("org/model", device_map="auto")
model = accelerator.prepare(model)
"""
LONGEST_WAIT_SECONDS = 60.0
HOSTILE_URIS = [
    "http://[",
    "file://[",
    "file:///\0",
    "file:///%00/x.py",
    "file:///" + "a" * 5000,
    "file:///" + "a/" * 3000 + "x.py",
    "file:///%ff%fe.py",
    "file://host/share/x.py",
    "file:",
    "",
    "untitled:Untitled-1",
    "\ud800",
    "file:///\ud800.py",
]


class RawClient:
    """Sends bytes, and collects the messages that come back."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.input, self._output = process.stdin, process.stdout

    def send(self, message: object, header: bytes = b"Content-Length: %d\r\n\r\n") -> None:
        body = json.dumps(message).encode()
        self.input.write(header % len(body) + body)

    def notify(self, method: str, **params: object) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, number: object, method: str, **params: object) -> None:
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    async def until(self, wanted: object) -> dict[str, Any]:
        """The answer to the request with this number; what the server asks is answered with an error."""

        async def wait() -> dict[str, Any]:
            while True:
                length = 0
                while (line := await self._output.readline()).strip():
                    if line.lower().startswith(b"content-length"):
                        length = int(line.partition(b":")[2])
                assert length, "the server is gone"
                message: dict[str, Any] = json.loads(await self._output.readexactly(length))
                if "method" not in message and message["id"] == wanted:
                    return message
                if "id" in message and "method" in message:
                    refusal = {"code": -32601, "message": "no"}
                    self.send({"jsonrpc": "2.0", "id": message["id"], "error": refusal})

        return await asyncio.wait_for(wait(), LONGEST_WAIT_SECONDS)

    async def start(self, *folders: str) -> None:
        self.request(
            "start",
            "initialize",
            processId=None,
            rootUri=None,
            workspaceFolders=[{"uri": uri, "name": "x"} for uri in folders],
            capabilities={
                "textDocument": {"diagnostic": {}},
                "workspace": {"diagnostics": {"refreshSupport": True}},
            },
        )
        await self.until("start")
        self.notify("initialized")

    async def still_works(self, after: str) -> None:
        """A document is opened and checked as if nothing had been."""
        document = {"uri": "untitled:good.py", "languageId": "python", "version": 1, "text": WARNED}
        self.notify("textDocument/didOpen", textDocument=document)
        self.request("good", "textDocument/diagnostic", textDocument={"uri": document["uri"]})
        answer = await self.until("good")
        assert [item["code"] for item in answer["result"]["items"]] == ["RS201"], after
        self.notify("textDocument/didClose", textDocument={"uri": document["uri"]})

    async def ends(self) -> int:
        self.input.close()
        return await asyncio.wait_for(self.process.wait(), LONGEST_WAIT_SECONDS)


@pytest_asyncio.fixture
async def client(tmp_path: Path) -> AsyncIterator[RawClient]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ranksafe.lsp"),
        cwd=tmp_path,
        env=environment(tmp_path / "home"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    yield RawClient(process)
    if process.returncode is None:
        process.kill()
        await process.wait()


NONSENSE = [
    b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
    b"Content-Length: 9999999999\r\n\r\n",
    b"Content-Length: -1\r\n\r\n",
    b"Content-Length: \xd9\xa3\r\n\r\n",
    b"Content-Length:\r\n\r\n",
    b"\r\n\r\n\n\n",
    b"x" * 300_000,
    b"Content-Length: 2\r\nContent-Length: 5\r\n\r\nhello",
    b"Content-Length: 4\r\n\r\n\xff\xfe{}",
    b"Content-Length: 100000\r\n\r\n" + b"[" * 100_000,
    b'Content-Length: 14\r\n\r\n{"jsonrpc": 1}',
    b"Content-Length: 5\r\n\r\n[1,2]",
    b'Content-Length: 24\r\n\r\n{"jsonrpc":"2.0","id":1}',
]


async def test_nonsense_is_passed_over(client: RawClient) -> None:
    await client.start()
    for nonsense in NONSENSE:
        client.input.write(nonsense)
        await client.still_works(repr(nonsense[:40]))
    assert await client.ends() == 0


async def test_lines_may_end_in_lf_alone(client: RawClient) -> None:
    await client.start()
    message = {"jsonrpc": "2.0", "id": 1, "method": "textDocument/hover", "params": {}}
    client.send(message, b"Content-Length: %d\n\n")
    assert "error" in await client.until(1)
    await client.still_works("LF alone")
    assert await client.ends() == 0


async def test_what_cannot_be_understood_is_refused(client: RawClient) -> None:
    await client.start()
    document = {"uri": "untitled:x.py"}
    hostile: list[object] = [
        {"textDocument": 1},
        {"textDocument": {"uri": 5}},
        {},
        None,
        [],
        "text",
        {"textDocument": document, "position": {"line": "one", "character": {}}},
    ]
    for number, params in enumerate(hostile):
        message = {"jsonrpc": "2.0", "id": number, "method": "textDocument/hover"}
        client.send({**message, "params": params})
        assert "error" in await client.until(number), params
    client.send({"id": 70, "method": "textDocument/hover", "params": {}})
    assert (await client.until(70))["error"]["code"] == -32600
    client.input.write(b"Content-Length: 5\r\n\r\n{oops")
    assert (await client.until(None))["error"]["code"] == -32700
    await client.still_works("")


async def test_no_address_stops_the_server(client: RawClient) -> None:
    await client.start(*HOSTILE_URIS)
    for number, uri in enumerate(HOSTILE_URIS):
        document = {"uri": uri, "languageId": "python", "version": 1, "text": WARNED}
        client.notify("textDocument/didOpen", textDocument=document)
        folder = {"uri": uri, "name": "x"}
        for changed in ({"added": [folder], "removed": []}, {"added": [], "removed": [folder]}):
            client.notify("workspace/didChangeWorkspaceFolders", event=changed)
        client.notify("workspace/didChangeWatchedFiles", changes=[{"uri": uri, "type": 1}])
        client.request(number, "textDocument/diagnostic", textDocument={"uri": uri})
        await client.until(number)
        await client.still_works(repr(uri[:40]))
    assert await client.ends() == 0


@pytest.mark.parametrize("uri", ["http://[", "file:///" + "a" * 5000])
async def test_no_folder_stops_the_server(client: RawClient, uri: str) -> None:
    await client.start(uri)
    await client.still_works(uri)


async def test_no_position_stops_the_server(client: RawClient) -> None:
    await client.start()
    uri = "untitled:edited.py"
    document = {"uri": uri, "languageId": "python", "version": 1, "text": WARNED}
    client.notify("textDocument/didOpen", textDocument=document)
    for number, position in enumerate((-1, 2**31, 10**30, 1.5, None, "1")):
        place = {"line": position, "character": position}
        change = {"range": {"start": place, "end": place}, "text": "\n"}
        client.notify(
            "textDocument/didChange",
            textDocument={"uri": uri, "version": 2},
            contentChanges=[change],
        )
        client.request(number, "textDocument/hover", textDocument={"uri": uri}, position=place)
        await client.until(number)
        await client.still_works(str(position))


async def test_what_comes_too_early_or_too_late_is_refused(client: RawClient) -> None:
    hover = {"textDocument": {"uri": "untitled:x.py"}, "position": {"line": 0, "character": 0}}
    client.request(1, "textDocument/hover", **hover)
    assert (await client.until(1))["error"]["code"] == -32002
    client.notify("workspace/didChangeConfiguration", settings={})
    await client.start()
    client.request(2, "initialize", processId=None, rootUri=None, capabilities={})
    assert (await client.until(2))["error"]["code"] == -32600
    await client.still_works("initialize again")
    client.request(3, "shutdown")
    client.request(4, "textDocument/hover", **hover)
    client.request(5, "shutdown")
    assert "result" in await client.until(3)
    for number in (4, 5):
        assert (await client.until(number))["error"]["code"] == -32600
    client.notify("exit")
    assert await client.ends() == 0


async def test_a_notification_that_wants_an_answer_is_refused(client: RawClient) -> None:
    await client.start()
    document = {"uri": "untitled:x.py", "languageId": "python", "version": 1, "text": WARNED}
    client.request(1, "textDocument/didOpen", textDocument=document)
    assert (await client.until(1))["error"]["code"] == -32600
    client.request(2, "textDocument/diagnostic", textDocument={"uri": document["uri"]})
    assert (await client.until(2))["result"]["items"] == []


async def test_a_command_that_waits_does_not_keep_the_server(client: RawClient) -> None:
    capabilities = {"workspace": {"configuration": True}}
    client.request(1, "initialize", processId=None, rootUri=None, capabilities=capabilities)
    await client.until(1)
    client.notify("initialized")
    # It waits for settings, which this client is asked for and does not tell.
    client.request(2, "workspace/executeCommand", command="ranksafe.openRule", arguments=["RS201"])
    client.request(3, "shutdown")
    assert "error" in await client.until(2)
    assert "result" in await client.until(3)
    client.notify("exit")
    assert await client.ends() == 0


async def test_a_file_is_not_closed_as_a_notebook(client: RawClient) -> None:
    await client.start()
    uri = "untitled:x.py"
    document = {"uri": uri, "languageId": "python", "version": 1, "text": WARNED}
    client.notify("textDocument/didOpen", textDocument=document)
    client.notify("notebookDocument/didClose", notebookDocument={"uri": uri}, cellTextDocuments=[])
    client.request(2, "textDocument/diagnostic", textDocument={"uri": uri})
    assert (await client.until(2))["result"]["items"]


@pytest.mark.parametrize("number", [None, {}, []])
async def test_a_request_has_a_number_or_a_name(client: RawClient, number: object) -> None:
    await client.start()
    client.request(number, "textDocument/codeLens", textDocument={"uri": "untitled:x.py"})
    assert (await client.until(None))["error"]["code"] == -32600


async def test_a_command_without_the_name_that_it_wants_is_refused(client: RawClient) -> None:
    await client.start()
    params = {"command": "ranksafe.openRule", "arguments": [None]}
    client.request(1, "workspace/executeCommand", **params)
    assert "refused" in (await client.until(1))["result"]


async def test_a_lens_of_nothing_is_resolved(client: RawClient) -> None:
    await client.start()
    place = {"line": 0, "character": 0}
    data = {"kind": "fit", "uri": [{}]}
    client.request(1, "codeLens/resolve", range={"start": place, "end": place}, data=data)
    assert "result" in await client.until(1)
