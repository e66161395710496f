"""A client that sends exactly what it is given: no library leaves out what it does not know."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, TypeVar

from ranksafe.lsp.transport import MessageSplitter

LONGEST_WAIT_SECONDS = 60.0
_Client = TypeVar("_Client", bound="PlainClient")


class PlainClient:
    """One server process and what it said."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._came = asyncio.Condition()
        self.notifications: list[tuple[str, Any]] = []
        self.asked: list[tuple[str, Any]] = []
        """Requests of the server."""
        self.answers: dict[str, Any] = {}
        """To them, by method; all others are answered with null."""
        self._reading = asyncio.ensure_future(self._read())

    @classmethod
    async def start(
        cls: type[_Client],
        command: Sequence[str],
        environment: Mapping[str, str],
        errors: IO[bytes] | None = None,
    ) -> _Client:
        """Start the server as an editor does: the command's first word is looked for on PATH."""
        process = await asyncio.create_subprocess_exec(
            *command,
            env=dict(environment),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
        return cls(process)

    async def request(self, method: str, params: Any) -> Any:
        """The result; raises what the server answers as an error."""
        number = len(self._pending) + 1
        self._pending[number] = asyncio.get_running_loop().create_future()
        self._send({"id": number, "method": method, "params": params})
        return await asyncio.wait_for(self._pending[number], LONGEST_WAIT_SECONDS)

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    async def until(self, condition: Callable[[], Any]) -> Any:
        """What a condition gives, once it gives something."""

        async def wait() -> Any:
            async with self._came:
                await self._came.wait_for(condition)
            return condition()

        return await asyncio.wait_for(wait(), LONGEST_WAIT_SECONDS)

    async def end(self) -> int:
        """``shutdown``, ``exit``; the exit status."""
        await self.request("shutdown", None)
        self.notify("exit", None)
        status = await asyncio.wait_for(self._process.wait(), LONGEST_WAIT_SECONDS)
        await self._reading
        return status

    async def kill(self) -> None:
        """End a server that is still there."""
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        await self._reading

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    async def _read(self) -> None:
        splitter = MessageSplitter()
        assert self._process.stdout is not None
        while data := await self._process.stdout.read(1 << 16):
            for body in splitter.feed(data):
                self._take(json.loads(body))
            async with self._came:
                self._came.notify_all()

    def _take(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method is None:
            future = self._pending[message["id"]]
            if "error" in message:
                future.set_exception(RuntimeError(str(message["error"])))
            else:
                future.set_result(message["result"])
        elif "id" in message:
            self.asked.append((method, message.get("params")))
            self._send({"id": message["id"], "result": self.answers.get(method)})
        else:
            self.notifications.append((method, message.get("params")))
