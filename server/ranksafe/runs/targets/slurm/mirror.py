"""A run's folder on the cluster, copied here while it grows: what the login node's watcher tells, made files of."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_NAME = re.compile(r"(?:rank\d{1,6}\.[a-z_]{1,40}|node\.\d{1,6}\.log|batch\.log)", re.ASCII)
_LARGEST_FILE = 512 * 2**20
_PRIVATE = 0o600


class Mirror:
    """Takes nothing on trust: a name is one of a run's files, and a file stays below half a gigabyte."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def sizes(self) -> dict[str, int]:
        """The bytes that are here already, by file."""
        return {
            path.name: path.stat().st_size
            for path in self._directory.iterdir()
            if _NAME.fullmatch(path.name)
        }

    def take(self, entry: Mapping[str, Any]) -> None:
        """Carry out one of the watcher's ``file`` or ``whole`` entries; what is not one is left out."""
        name = entry.get("file", entry.get("whole"))
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            return
        try:
            data = base64.b64decode(entry["data"], validate=True)
            at = int(entry.get("at", 0))
        except (KeyError, TypeError, ValueError, binascii.Error):
            return
        if "whole" in entry:
            self._replace(self._directory / name, data)
        else:
            self._extend(self._directory / name, at, data)

    def _replace(self, path: Path, data: bytes) -> None:
        temporary = path.with_name(path.name + ".new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        temporary.replace(path)

    def _extend(self, path: Path, at: int, data: bytes) -> None:
        """Append what is new of it; a part that was sent twice is taken once."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, _PRIVATE)
        with os.fdopen(descriptor, "wb") as file:
            size = file.seek(0, os.SEEK_END)
            if at <= size and size + len(data) <= _LARGEST_FILE:
                file.write(data[size - at :])
