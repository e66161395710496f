"""A run's files on its host, as they come over the connection, made the same files here."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from ranksafe.runs.plain_files import parse_json

_NAME = re.compile(r"(?:rank\d{1,6}|launcher|supervisor)\.[a-z-]{1,30}(?:\.(?:\d{1,9}|telling))?")
_ANSWER = ".look"
"""Where every thread of a rank stands: files of the project are named as they are here (`runs.watch.stacks`)."""
_LARGEST_FILE = 1 << 30
_LARGEST_PART = 1 << 23
_LONGEST_HEADER = 1 << 16
_PRIVATE = 0o600


class Garbled(Exception):
    """What came is none of our messages."""


def sizes(directory: Path) -> dict[str, int]:
    """How much of each growing file is here already."""
    return {
        path.name: path.stat().st_size for path in directory.iterdir() if _NAME.fullmatch(path.name)
    }


class Mirror:
    """Takes what `on_host.follow` says, in pieces of any size. The far side is not trusted with names or sizes."""

    def __init__(self, directory: Path, there: str, here: str) -> None:
        self._directory = directory
        self._names = (_in_json(there.rstrip("/") + "/"), _in_json(here.rstrip("/") + "/"))
        self._buffer = b""
        self.heard = False
        """Whether a message has come."""
        self.caught_up = False
        """Whether everything has come that was there when the host was asked, and the run goes on."""
        self.over: dict[str, Any] | None = None
        """The last message, once it has come."""
        self.missing = False
        """The host no longer has the run's folder."""
        self.refused: str | None = None
        """Why the host did not make the run's folder."""

    def take(self, data: bytes) -> None:
        """Write down what came. Raises Garbled, and OSError when this machine's disk is full."""
        self._buffer += data
        while True:
            header, found, rest = self._buffer.partition(b"\n")
            if len(header) > _LONGEST_HEADER:
                raise Garbled
            if not found:
                return
            message = _parsed(header)
            size = message.get("size", 0)
            if not isinstance(size, int) or not 0 <= size <= _LARGEST_PART:
                raise Garbled
            if len(rest) < size:
                return
            self._buffer = rest[size:]
            self.heard = True
            self._carry_out(message, rest[:size])

    def _carry_out(self, message: dict[str, Any], content: bytes) -> None:
        if "over" in message:
            self.over = message
        elif "caught_up" in message:
            self.caught_up = True
        elif "missing" in message:
            self.missing = True
        elif "refused" in message:
            self.refused = str(message["refused"])[:1000]
        elif "file" in message:
            name, at = message["file"], message.get("at")
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise Garbled
            if at is None:
                self._replace(name, content)
            elif isinstance(at, int) and 0 <= at <= _LARGEST_FILE:
                self._write_at(name, at, content)

    def _replace(self, name: str, content: bytes) -> None:
        if name.endswith(_ANSWER):
            content = content.replace(*self._names)
        temporary = self._directory / (name + ".new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        temporary.replace(self._directory / name)

    def _write_at(self, name: str, at: int, content: bytes) -> None:
        descriptor = os.open(self._directory / name, os.O_WRONLY | os.O_CREAT, _PRIVATE)
        with os.fdopen(descriptor, "wb") as file:
            file.seek(at)
            file.write(content)


def _in_json(text: str) -> bytes:
    return json.dumps(text)[1:-1].encode()


def _parsed(header: bytes) -> dict[str, Any]:
    try:
        value = parse_json(header)
    except ValueError as error:
        raise Garbled from error
    if not isinstance(value, dict):
        raise Garbled
    return value
