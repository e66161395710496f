"""As much of a debugger's client as a test needs: the Debug Adapter Protocol over a socket."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

LONGEST_SECONDS = 120.0


class Debugger:
    """One session."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=LONGEST_SECONDS)
        self._file = self._socket.makefile("rb")
        self._sent = 0
        self._events: list[dict[str, Any]] = []

    def __enter__(self) -> Debugger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        self._socket.close()

    def attach(self, script: Path, line: int, arguments: Mapping[str, Any]) -> None:
        """Attach with one breakpoint, and let the script begin."""
        self.ask("initialize", adapterID="test", linesStartAt1=True, columnsStartAt1=True)
        self._send("attach", arguments)
        self.event("initialized")
        self.ask("setBreakpoints", source={"path": str(script)}, breakpoints=[{"line": line}])
        self.ask("configurationDone")

    def stopped(self) -> int:
        """Wait for a stop; the thread's number."""
        return int(self.event("stopped")["threadId"])

    def place(self, thread: int) -> tuple[str, int]:
        """Where a thread stands."""
        frame = self._innermost(thread)
        return str(frame["name"]), int(frame["line"])

    def value(self, thread: int, expression: str) -> str:
        """What an expression is there."""
        frame = self._innermost(thread)["id"]
        answer = self.ask("evaluate", expression=expression, frameId=frame, context="watch")
        return str(answer["result"])

    def ask(self, command: str, **arguments: Any) -> Any:
        """The answer's body."""
        number = self._send(command, arguments)
        while True:
            message = self._read()
            if message["type"] == "response" and message["request_seq"] == number:
                assert message["success"], message
                return message.get("body")
            self._events.append(message)

    def event(self, name: str) -> Any:
        """Wait for an event; its body."""
        while True:
            for message in self._events:
                if message.get("event") == name:
                    self._events.remove(message)
                    return message.get("body")
            self._events.append(self._read())

    def _innermost(self, thread: int) -> dict[str, Any]:
        frames: list[dict[str, Any]] = self.ask("stackTrace", threadId=thread)["stackFrames"]
        return frames[0]

    def _send(self, command: str, arguments: Mapping[str, Any]) -> int:
        self._sent += 1
        message = {
            "seq": self._sent,
            "type": "request",
            "command": command,
            "arguments": arguments,
        }
        body = json.dumps(message).encode()
        self._socket.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        return self._sent

    def _read(self) -> dict[str, Any]:
        length = 0
        while line := self._file.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        assert length, "the debug adapter has closed the connection"
        message: dict[str, Any] = json.loads(self._file.read(length))
        return message
