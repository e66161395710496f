"""The server's standard input and output.

pygls 2.1.1 takes four thread switches to read one message (``pygls/io_.py``, ``run_async``); here one thread cuts the
input into messages and hands over all that have arrived, so that keys typed meanwhile are seen before the next
analysis starts.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from lsprotocol import types
from pygls.io_ import StdoutWriter

from ranksafe.lsp.connection import Connection
from ranksafe.lsp.session import Session

logger = logging.getLogger(__name__)

_HEADER_END: Final = re.compile(rb"\r?\n\r?\n")
_LENGTH: Final = re.compile(rb"content-length:[ \t]{0,8}(\d{1,10})[ \t]{0,8}\r?\n", re.IGNORECASE)
_MOST_BYTES: Final = 1 << 28
"""Of a message, and far more than any text that is checked."""
_MOST_HEADER_BYTES: Final = 1 << 13
_READ_BYTES: Final = 1 << 16


class MessageSplitter:
    """Cuts a stream of bytes into the bodies of LSP messages.

    What is no message costs no more than itself: the next header with a length is the beginning of the next one.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take more bytes and give the bodies that are complete now."""
        self._buffer += data
        while (body := self._next()) is not None:
            yield body

    def _next(self) -> bytes | None:
        head = _HEADER_END.search(self._buffer)
        if head is None:
            # The beginning of a header, or what nobody asked for.
            del self._buffer[:-_MOST_HEADER_BYTES]
            return None
        start = head.end()
        lengths = _LENGTH.findall(self._buffer[max(0, start - _MOST_HEADER_BYTES) : start])
        if not lengths or int(lengths[-1]) > _MOST_BYTES:
            # No length, no body: go on after this header.
            del self._buffer[:start]
            return b""
        end = start + int(lengths[-1])
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[start:end])
        del self._buffer[:end]
        return body


def serve_stdio(session: Session) -> None:
    """Serve on standard input and output until the client says ``exit`` or goes away."""
    output = sys.stdout.buffer
    # A stray print, ours or a plug-in's, must not end up between messages.
    sys.stdout = sys.stderr
    session.client.protocol.set_writer(StdoutWriter(output))
    try:
        asyncio.run(_serve(session.client, sys.stdin.fileno()))
    except BrokenPipeError:
        logger.info("the client is gone")
    finally:
        session.end()
        session.client.shutdown()  # type: ignore[no-untyped-call]


async def _serve(client: Connection, descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def receive(bodies: list[bytes]) -> None:
        for body in bodies:
            _handle(client, body)

    reader = threading.Thread(
        target=_read,
        args=(
            descriptor,
            lambda bodies: loop.call_soon_threadsafe(receive, bodies),
            lambda: loop.call_soon_threadsafe(ended.set),
        ),
        daemon=True,
        name="ranksafe-input",
    )
    reader.start()
    await ended.wait()


def _read(
    descriptor: int, deliver: Callable[[list[bytes]], object], ended: Callable[[], object]
) -> None:
    splitter = MessageSplitter()
    try:
        # Not through sys.stdin: a thread that waits in its buffer would abort the interpreter's exit.
        while data := os.read(descriptor, _READ_BYTES):
            bodies = [body for body in splitter.feed(data) if body]
            if bodies:
                deliver(bodies)
    except (OSError, RuntimeError):
        # The input was closed under us, or the loop has ended already.
        pass
    finally:
        # Whatever it was: without an input there is nothing to live for.
        with suppress(RuntimeError):
            ended()


def _refusal(client: Connection, message: object) -> types.ErrorCodes | None:
    """Why a request is refused, or a notification passed over, whatever it asks: it has no number, or this is not its
    time. pygls leaves requests after ``shutdown`` without an answer, and starts anew at a second ``initialize``."""
    method = message.get("method") if isinstance(message, dict) else None
    if not isinstance(message, dict) or method in (None, types.EXIT):
        return None
    if not isinstance(message.get("id", ""), (int, str)):
        return types.ErrorCodes.InvalidRequest
    if client.has_shut_down:
        return types.ErrorCodes.InvalidRequest
    is_first = method == types.INITIALIZE
    if client.is_initialized:
        return types.ErrorCodes.InvalidRequest if is_first else None
    return None if is_first else types.ErrorCodes.ServerNotInitialized


def _handle(client: Connection, body: bytes) -> None:
    protocol = client.protocol
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        logger.exception("a message is no JSON")
        client.refuse(None, types.ErrorCodes.ParseError)
        return
    refusal = _refusal(client, message)
    if refusal is not None:
        if "id" in message:
            client.refuse(message["id"], refusal)
        return
    try:
        structured = protocol.structure_message(message)
        if "id" in message and not hasattr(structured, "id"):
            # A notification's method: pygls would carry it out, and nobody would answer the request.
            client.refuse(message["id"], types.ErrorCodes.InvalidRequest)
            return
        protocol.handle_message(structured)
    except Exception:
        logger.exception("a message could not be handled")
        if not isinstance(message, dict) or ("id" in message and "method" not in message):
            return
        known = "method" in message and message.get("jsonrpc") == protocol.VERSION
        reason = types.ErrorCodes.InvalidParams if known else types.ErrorCodes.InvalidRequest
        if "id" in message:
            client.refuse(message["id"], reason)
