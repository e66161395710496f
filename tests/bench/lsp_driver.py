"""A language server as an editor sees it: raw JSON-RPC over stdio, timed from the first byte sent to the answer."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Shown:
    """The diagnostics of one text, to come behind the first ``seen`` that came."""

    uri: str
    version: int
    seen: int


class Server:
    """One server process that pushes diagnostics; ``options``: its initialization options."""

    def __init__(
        self,
        name: str,
        command: list[str],
        root: Path,
        environment: dict[str, str],
        options: dict[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.notified: list[tuple[float, str, Any]] = []
        """When each notification came, its method and its parameters."""
        self._options = options or {}
        self._root = root
        self._ids = 0
        self._answers: dict[int, tuple[float, dict[str, Any]]] = {}
        self._published: list[tuple[float, str, int | None, list[dict[str, Any]]]] = []
        self._versions: dict[str, int] = {}
        self._news = threading.Condition()
        self._began = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=root,
            env={**os.environ, **environment},
        )
        threading.Thread(target=self._read, daemon=True).start()

    def initialize(self) -> float:
        """Seconds from the start of the process to the answer."""
        uri = self._root.as_uri()
        answered, _ = self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": uri,
                "workspaceFolders": [{"uri": uri, "name": "bench"}],
                "capabilities": {
                    "textDocument": {
                        "synchronization": {},
                        "publishDiagnostics": {"versionSupport": True, "relatedInformation": True},
                    },
                    "workspace": {"configuration": True, "workspaceFolders": True},
                    "general": {"positionEncodings": ["utf-16"]},
                },
                "initializationOptions": self._options,
            },
        )
        self.notify("initialized", {})
        return answered - self._began

    def open(self, path: Path, text: str) -> int:
        """Open a file and wait for its diagnostics; how many there are. Keys are typed into it from now on."""
        self._uri = path.as_uri()
        return len(self.shown(self.begin_open(path, text))[1])

    def begin_open(self, path: Path, text: str) -> Shown:
        """Open a file; what is to be waited for with `shown`."""
        uri = path.as_uri()
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        return self._edited(uri, 1, "textDocument/didOpen", {"textDocument": document})

    def type(self, line: int, column: int, removed: int, text: str) -> float:
        """Seconds from a keystroke to the diagnostics of the new text."""
        sent = time.perf_counter()
        return self.shown(self._typed(self._uri, line, column, removed, text))[0] - sent

    def begin_type(self, path: Path, line: int, column: int, removed: int, text: str) -> Shown:
        """A keystroke in any open file; what is to be waited for with `shown`."""
        return self._typed(path.as_uri(), line, column, removed, text)

    def close_file(self, path: Path) -> None:
        """Close a file."""
        self.notify("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}})

    def shown(self, wanted: Shown) -> tuple[float, list[dict[str, Any]]]:
        """When the diagnostics of a text came, and what they are."""

        def fitting() -> tuple[float, list[dict[str, Any]]] | None:
            for moment, uri, version, items in self._published[wanted.seen :]:
                if uri == wanted.uri and version in (None, wanted.version):
                    return moment, items
            return None

        with self._news:
            if not self._news.wait_for(lambda: fitting() is not None, 120.0):
                raise TimeoutError(f"{self.name}: no diagnostics for version {wanted.version}")
            found = fitting()
        assert found is not None
        return found

    def _typed(self, uri: str, line: int, column: int, removed: int, text: str) -> Shown:
        version = self._versions[uri] + 1
        start = {"line": line, "character": column}
        end = {"line": line, "character": column + removed}
        change = {"range": {"start": start, "end": end}, "text": text}
        identifier = {"uri": uri, "version": version}
        params = {"textDocument": identifier, "contentChanges": [change]}
        return self._edited(uri, version, "textDocument/didChange", params)

    def _edited(self, uri: str, version: int, method: str, params: Any) -> Shown:
        self._versions[uri] = version
        with self._news:
            seen = len(self._published)
        self.notify(method, params)
        return Shown(uri, version, seen)

    def request(self, method: str, params: Any, timeout: float = 120.0) -> tuple[float, Any]:
        """When the answer came, and its result."""
        self._ids += 1
        number = self._ids
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        with self._news:
            if not self._news.wait_for(lambda: number in self._answers, timeout):
                raise TimeoutError(f"{self.name}: {method}")
            moment, message = self._answers.pop(number)
        return moment, message.get("result")

    def notified_since(
        self, seen: int, fits: Callable[[str, Any], bool], timeout: float = 120.0
    ) -> tuple[float, Any]:
        """When the first notification after the first ``seen`` that fits (method, parameters) came, and its parameters."""

        def fitting() -> tuple[float, Any] | None:
            known = self.notified[seen:]
            return next(
                ((at, params) for at, method, params in known if fits(method, params)), None
            )

        with self._news:
            if not self._news.wait_for(lambda: fitting() is not None, timeout):
                raise TimeoutError(f"{self.name}: nothing of the kind was told")
            found = fitting()
        assert found is not None
        return found

    def notify(self, method: str, params: Any) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def memory_megabytes(self, field: str = "VmRSS") -> float | None:
        """``VmRSS`` now or ``VmHWM`` at most, as Linux tells it; None elsewhere."""
        try:
            status = Path(f"/proc/{self._process.pid}/status").read_text()
        except OSError:
            return None
        line = next(line for line in status.splitlines() if line.startswith(field))
        return int(line.split()[1]) / 1024

    def processor_seconds(self) -> float | None:
        """Processor time so far, all threads, as Linux tells it; None elsewhere."""
        total = 0
        try:
            for task in Path(f"/proc/{self._process.pid}/task").iterdir():
                total += int((task / "schedstat").read_text().split()[0])
        except OSError:
            return None
        return total / 1e9

    def close(self) -> None:
        self.request("shutdown", None)
        self.notify("exit", None)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while True:
            length = 0
            while (line := stream.readline().strip()) or not length:
                if not line:
                    return
                if line.lower().startswith(b"content-length"):
                    length = int(line.split(b":")[1])
            body = stream.read(length)
            moment = time.perf_counter()
            self._take(moment, json.loads(body))

    def _take(self, moment: float, message: dict[str, Any]) -> None:
        if "method" in message and "id" in message:
            asked = message["method"] == "workspace/configuration"
            result: list[dict[str, Any]] | None
            result = [{} for _ in message["params"]["items"]] if asked else None
            self._send({"jsonrpc": "2.0", "id": message["id"], "result": result})
            return
        with self._news:
            if "method" in message:
                self.notified.append((moment, message["method"], message.get("params")))
            if message.get("method") == "textDocument/publishDiagnostics":
                params = message["params"]
                shown = (moment, params["uri"], params.get("version"), params["diagnostics"])
                self._published.append(shown)
            elif "id" in message:
                self._answers[message["id"]] = (moment, message)
            self._news.notify_all()
