"""Results of earlier checks, found again by what they depended on.

One file per configuration, launch context and set of rules: a checksum, and the JSON that it is the checksum of. An
entry holds while the file's content is the same, which is taken for granted when size and modification time are, and,
where other files of the project may have had a part in the result, while none of them has changed. A cache that cannot
be read or written, or is damaged, is no cache, never an error.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ranksafe
from ranksafe import __version__
from ranksafe.checker.registry import Registry
from ranksafe.cli.results import FileResult, from_json, to_json

_FORMAT = 2
_FOLDERS_THAT_DECIDE = ("checker", "cli", "fixes", "launch", "rank_flow", "semantics", "source")


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Where results are kept: ``ranksafe/check`` below XDG_CACHE_HOME, else below ``~/.cache``."""
    base = environment.get("XDG_CACHE_HOME")
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    return root / "ranksafe" / "check"


def rules_fingerprint(registry: Registry) -> str:
    """Changes when ranksafe, the interpreter (whose parser is used) or a rule changes.

    Files are told by size and time, so that an edited checkout is noticed as well as a new version; no rule is
    imported for it.
    """
    digest = hashlib.sha256(f"{_FORMAT} {__version__} {sys.version}".encode())
    own = [Path(ranksafe.__file__).parent / name for name in _FOLDERS_THAT_DECIDE]
    for folder in own + registry.paths:
        for place, inner, names in os.walk(folder):
            inner.sort()
            for name in sorted(names):
                if name.endswith((".py", ".json")):
                    file = Path(place, name)
                    stat = file.stat()
                    digest.update(f"{file} {stat.st_size} {stat.st_mtime_ns}".encode())
    return digest.hexdigest()


@dataclass(slots=True)
class ResultCache:
    """The results kept under one key."""

    file: Path
    state: str
    """What the project's files look like now (`project_state`)."""
    _entries: dict[str, list[Any]] = field(default_factory=dict)
    _changed: bool = False

    @classmethod
    def open(cls, folder: Path, key: str, state: str) -> ResultCache:
        """The cache for ``key``, which must say everything but the files that the results depend on."""
        file = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
        try:
            written, _, content = file.read_bytes().partition(b"\n")
            entries = json.loads(content) if written == _checksum(content) else None
        except (OSError, ValueError):
            entries = None
        return cls(file, state, entries if isinstance(entries, dict) else {})

    def result_of(self, path: Path, stat: os.stat_result) -> FileResult | None:
        """The kept result of a file that looks unchanged."""
        entry = self._entry(path)
        if entry is None or entry[:2] != [stat.st_size, stat.st_mtime_ns]:
            return None
        return _understood(path, entry)

    def result_of_content(
        self, path: Path, stat: os.stat_result, content_hash: str
    ) -> FileResult | None:
        """The kept result of a file that was touched but has the same content."""
        entry = self._entry(path)
        if entry is None or entry[2] != content_hash:
            return None
        entry[:2] = [stat.st_size, stat.st_mtime_ns]
        self._changed = True
        return _understood(path, entry)

    def keep(
        self, result: FileResult, stat: os.stat_result, content_hash: str, *, alone: bool
    ) -> None:
        """Remember the result of a file whose ``stat`` was taken before it was read; ``alone``: no other file of the
        project had a part in it."""
        state = "" if alone else self.state
        entry = [stat.st_size, stat.st_mtime_ns, content_hash, state, to_json(result)]
        self._entries[str(result.path)] = entry
        self._changed = True

    def _entry(self, path: Path) -> list[Any] | None:
        entry = self._entries.get(str(path))
        if not isinstance(entry, list) or len(entry) != 5 or entry[3] not in ("", self.state):
            return None
        return entry

    def save(self) -> None:
        """Write the cache if it changed; the file is replaced at once, so no reader ever sees half of it."""
        if not self._changed:
            return
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.file.parent)
            content = json.dumps(self._entries, separators=(",", ":")).encode("ascii")
            with os.fdopen(handle, "wb") as stream:
                stream.write(b"%b\n%b" % (_checksum(content), content))
            Path(name).replace(self.file)
        except (OSError, TypeError, ValueError):
            return


def project_state(files: Iterable[Path]) -> str:
    """Changes when one of the files is added, removed or written; told by size and time."""
    digest = hashlib.blake2b(digest_size=16)
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            continue
        digest.update(
            f"{file} {stat.st_size} {stat.st_mtime_ns}\n".encode("utf-8", "surrogateescape")
        )
    return digest.hexdigest()


def content_hash(data: bytes) -> str:
    """Identifies a file's content."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _checksum(content: bytes) -> bytes:
    """Tells a file that was damaged, by one bit even, from the one that was written."""
    return content_hash(content).encode("ascii")


def _understood(path: Path, entry: list[Any]) -> FileResult | None:
    try:
        return from_json(path, entry[4])
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None
