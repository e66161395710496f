"""Random sessions with a real server: all that a client may send, and what none should, in any order.

A seed makes the steps beforehand, from a model of what the client has open by the letter of LSP. Whatever was sent, the
server lives and answers each request once, never with an error of its own; and when the storm is over it shows of every
document what a fresh server shows that opens the last texts with the same files. One server serves several rounds, with
all documents closed in between.

    python -m tests.hardening.sessions build/fuzzing/session-7.txt     leaves out what it fails without
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from tests.hardening.measured import environment
from tests.hardening.session_steps import HERE, Model, Step, Story
from tests.lsp.plain_client import PlainClient

_LONGEST_WAIT_SECONDS: Final = 1_200.0
_QUIET_SECONDS: Final = 0.5
"""After which all that waits for a pause in the typing has begun."""
_DEFECTS: Final = re.compile(
    r"^(?:the analysis of .* failed|the rule .* failed on|what follows from|reading .* ahead failed"
    r"|the project could not be|Task exception was never|Exception in callback|.*Error sending data)",
    re.MULTILINE,
)
"""What the server says in its log of errors of its own."""


class Attacker(PlainClient):
    """Notes what is wrong with the answers, and what an editor would show."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.pulls = False
        self.model: Model
        self.due: Counter[str] = Counter()
        """Requests without an answer, by what JSON makes of their numbers."""
        self.wrong: list[str] = []
        self.shown: dict[str, Any] = {}
        self.actions: list[Any] = []
        self._pulled: dict[str, tuple[int, str]] = {}
        self._newest: dict[str, int] = {}
        self._count = 0
        super().__init__(process)

    def send(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        if "method" in message and type(number) in (int, str):
            self.due[json.dumps(number)] += 1
        self._send(message)

    def send_bytes(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)

    def ask(self, method: str, params: object) -> str:
        self._count += 1
        number = f"ask-{self._count}"
        self.send({"id": number, "method": method, "params": params})
        return json.dumps(number)

    def pull(self) -> None:
        """As editors do when they are told to, or have typed."""
        for uri in self.model.texts if self.pulls else ():
            number = self.ask("textDocument/diagnostic", {"textDocument": {"uri": uri}})
            self._pulled[number] = (self._count, uri)

    def _take(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            self._answered(message)
        elif message["method"] == "textDocument/publishDiagnostics":
            self.shown[message["params"]["uri"]] = message["params"]["diagnostics"]
        elif "id" in message:
            given = (
                [self.model.settings] if message["method"] == "workspace/configuration" else None
            )
            self._send({"id": message["id"], "result": given})
            if message["method"] == "workspace/diagnostic/refresh":
                self.pull()

    def _answered(self, message: dict[str, Any]) -> None:
        number = json.dumps(message["id"])
        if message["id"] is None:
            return  # to what could not be read
        self.due[number] -= 1
        if self.due[number] < 0:
            self.wrong.append(f"answered once more: {message}")
        if message.get("error", {}).get("code") == -32603:
            self.wrong.append(f"an error of its own: {message}")
        result = message.get("result")
        if (
            isinstance(result, list)
            and result
            and isinstance(result[0], dict)
            and "kind" in result[0]
        ):
            self.actions = result
        order, uri = self._pulled.pop(number, (0, ""))
        if uri and result and order > self._newest.get(uri, 0):
            self._newest[uri] = order
            self.shown[uri] = result["items"]

    async def all_answered(self) -> None:
        await self.comes_to(lambda: not +self.due, lambda: f"without an answer: {+self.due}")

    async def comes_to(self, condition: Any, otherwise: Any) -> None:
        """Wait until a condition holds; and nothing may be wrong by then."""
        for _ in range(int(_LONGEST_WAIT_SECONDS / 0.05)):
            assert not self._reading.done(), "the server is gone"
            if condition():
                break
            await asyncio.sleep(0.05)
        else:
            raise AssertionError(otherwise())
        assert not self.wrong, self.wrong

    async def ends(self, politely: bool) -> None:
        if politely:
            number = self.ask("shutdown", None)
            refused = self.ask("textDocument/hover", {"textDocument": {"uri": "x"}})
            await self.comes_to(lambda: not self.due[number] + self.due[refused], lambda: "no end")
            await self.all_answered()
            self._send({"method": "exit"})
        else:
            assert self._process.stdin is not None
            self._process.stdin.close()
        status = await asyncio.wait_for(self._process.wait(), _LONGEST_WAIT_SECONDS)
        assert status == 0, f"ended with {status}"


@asynccontextmanager
async def _server(root: Path, home: str, model: Model, pulls: bool) -> AsyncIterator[Attacker]:
    command = (sys.executable, "-m", "ranksafe.lsp")
    log = root / f"{home}.log"
    with log.open("wb") as errors:
        client = await Attacker.start(command, environment(root / home), errors)
        client.model, client.pulls = model, pulls
        try:
            yield client
        finally:
            await client.kill()
    said = log.read_text("utf-8", "replace")
    defect = _DEFECTS.search(said)
    assert defect is None, said[defect.start() :][:3_000] if defect else ""


def _initialize(model: Model, pulls: bool, folders: list[str]) -> dict[str, Any]:
    capabilities: dict[str, Any] = {
        "workspace": {"configuration": True, "codeLens": {"refreshSupport": True}},
        "textDocument": {"codeAction": {"resolveSupport": {"properties": ["edit"]}}},
        "general": {"positionEncodings": [model.encoding]},
    }
    if pulls:
        capabilities["textDocument"]["diagnostic"] = {}
        capabilities["workspace"]["diagnostics"] = {"refreshSupport": True}
    named = [{"uri": uri, "name": "x"} for uri in folders]
    return {"processId": None, "capabilities": capabilities, "workspaceFolders": named}


async def _start(client: Attacker, initialize: dict[str, Any]) -> None:
    client.send({"id": "start", "method": "initialize", "params": initialize})
    await client.all_answered()
    client.send({"method": "initialized", "params": {}})


def _is_known(uri: str, here: str) -> bool:
    """Not one of those that odd values open."""
    return uri.startswith((f"{here}/", "vscode-"))


async def _compare(client: Attacker, root: Path, home: str) -> None:
    """What is shown now is what a fresh server shows."""
    model, here = client.model, root.as_uri()
    for message in model.repairs():
        client.send(model.told(message))
    await asyncio.sleep(_QUIET_SECONDS)
    client.pull()
    await client.all_answered()
    async with _server(root, home, model, client.pulls) as fresh:
        await _start(fresh, _initialize(model, client.pulls, list(model.folders)))
        for uri in model.documents():
            fresh.send(model.opening(uri))
        await asyncio.sleep(_QUIET_SECONDS)
        fresh.pull()
        await fresh.all_answered()

        def shows(one: Attacker) -> dict[str, Any]:
            return {uri: one.shown.get(uri) or [] for uri in model.places()}

        def others() -> str:
            now, anew = shows(client), shows(fresh)
            return "\n".join(
                f"{uri}\nis shown {json.dumps(now[uri])}\nbut anew  {json.dumps(anew[uri])}"
                for uri in now
                if now[uri] != anew[uri]
            )

        await client.comes_to(lambda: shows(client) == shows(fresh), others)
        await fresh.ends(politely=True)
    for uri in model.documents():
        client.send(model.told(model.closing(uri)))
    await client.comes_to(
        lambda: (
            client.pulls
            or not any(items for uri, items in client.shown.items() if _is_known(uri, here))
        ),
        lambda: f"still shown after all was closed: {client.shown}",
    )


async def _play(steps: list[Step], root: Path) -> None:
    start, *rest = steps
    here = root.as_uri()
    model = Model(start["encoding"])
    pulls, politely = start["pulls"], start["politely"]
    async with _server(root, "home", model, pulls) as client:
        for message in start["before"]:
            client.send(message)
        await _start(client, _initialize(model, pulls, []))
        for number, step in enumerate(json.loads(json.dumps(rest).replace(HERE, here))):
            for name, text in step.get("files", {}).items():
                _write(root / name, text)
            for message in step.get("send", ()):
                client.send(model.told(message, step.get("odd")))
            client.send_bytes(step.get("bytes", "").encode("latin-1"))
            if "resolve" in step:
                for action in client.actions[:4]:
                    client.ask("codeAction/resolve", action)
            await asyncio.sleep(step.get("wait", 0))
            if "compare" in step:
                await _compare(client, root, f"home-{number}")
        await client.ends(politely)


def _write(file: Path, text: str | None) -> None:
    with suppress(OSError):
        if text is None:
            file.unlink()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode("utf-8", "surrogatepass"))


def play(steps: list[Step]) -> None:
    """Raises where the server does what it should not."""
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(_play(steps, Path(name).resolve()))


def session(choose: random.Random) -> Iterator[str]:
    """What `tests.hardening.fuzzing` tries."""
    steps = Story(choose).steps
    yield json.dumps(steps)
    play(steps)


def _fails(steps: list[Step]) -> bool:
    try:
        play(steps)
    except AssertionError as error:
        print(f"{len(steps)} steps: {str(error)[:100]}", flush=True)
        return True
    except (KeyError, IndexError):
        pass  # of steps that make no sense without those left out
    return False


def main(name: str) -> None:
    start, *steps = json.loads(Path(name).read_text("utf-8"))
    size = len(steps) // 2
    while size:
        at = 0
        while at < len(steps):
            fewer = [*steps[:at], *steps[at + size :]]
            if _fails([start, *fewer]):
                steps = fewer
            else:
                at += size
        size //= 2
    for step in steps:
        print(json.dumps(step))


if __name__ == "__main__":
    main(sys.argv[1])
