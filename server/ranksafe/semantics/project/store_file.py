"""The SQLite file behind `summary_store`: its tables, its name, one transaction per batch."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
import time
import zlib
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import ranksafe
from ranksafe import __version__

_FORMAT: Final = 2
_WRITING_WAITS_SECONDS: Final = 5.0
_UNUSED_DAYS: Final = 30.0
_OUTDATED_DAYS: Final = 1.0

_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT)",
    "CREATE TABLE IF NOT EXISTS files"
    " (path TEXT PRIMARY KEY, size INTEGER, mtime_ns INTEGER, hash TEXT, may_train INTEGER, checksum INTEGER)",
    "CREATE TABLE IF NOT EXISTS summaries (hash TEXT PRIMARY KEY, text TEXT, checksum INTEGER)",
    "CREATE TABLE IF NOT EXISTS extras"
    " (kind TEXT, path TEXT, hash TEXT, text TEXT, checksum INTEGER, PRIMARY KEY (kind, path))",
)


class Stamp(NamedTuple):
    """A file as it was when it was read."""

    size: int
    mtime_ns: int
    hash: str
    """`ranksafe.semantics.project.files.content_hash` of its text."""
    may_train: bool
    """What `ranksafe.semantics.project.texts.may_train` says of its text."""


@dataclass(slots=True)
class Batch:
    """What is to be written."""

    stamps: dict[str, Stamp] = field(default_factory=dict)
    summaries: dict[str, str] = field(default_factory=dict)
    extras: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return max(len(self.stamps), len(self.summaries), len(self.extras))

    def take_over(self, other: Batch) -> None:
        """Add what another one has; its entries win."""
        self.stamps |= other.stamps
        self.summaries |= other.summaries
        self.extras |= other.extras


def write(file: Path, root: str, batch: Batch, present: set[str] | None) -> None:
    """Write a batch; ``present``: the paths of all files there are. Raises sqlite3.Error, OSError, ValueError."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        _remove_old(file)
    connection = sqlite3.connect(file, timeout=_WRITING_WAITS_SECONDS, isolation_level=None)
    with closing(connection):
        connection.execute("BEGIN IMMEDIATE")
        for statement in _TABLES:
            connection.execute(statement)
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('root', ?)", (stored_root(root),))
        connection.executemany(
            "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?)",
            [
                (path, *stamp, checksum(path, *map(str, stamp)))
                for path, stamp in batch.stamps.items()
            ],
        )
        connection.executemany(
            "INSERT OR REPLACE INTO summaries VALUES (?, ?, ?)",
            [(hash_, text, checksum(text, hash_)) for hash_, text in batch.summaries.items()],
        )
        connection.executemany(
            "INSERT OR REPLACE INTO extras VALUES (?, ?, ?, ?, ?)",
            [
                (kind, path, hash_, text, checksum(text, kind, path, hash_))
                for (kind, path), (hash_, text) in batch.extras.items()
            ],
        )
        if present is not None:
            _tidy(connection, present)
        connection.execute("COMMIT")


def _tidy(connection: sqlite3.Connection, present: set[str]) -> None:
    known = {path for (path,) in connection.execute("SELECT path FROM files")}
    gone = [(path,) for path in known - present]
    connection.executemany("DELETE FROM files WHERE path = ?", gone)
    connection.executemany("DELETE FROM extras WHERE path = ?", gone)
    # Texts of other branches are kept, as many as there are files.
    (texts,) = connection.execute("SELECT count(*) FROM summaries").fetchone()
    if texts > 2 * len(present):
        connection.execute("DELETE FROM summaries WHERE hash NOT IN (SELECT hash FROM files)")


def _remove_old(file: Path) -> None:
    """Before a store is made: take away those of versions and projects that are no longer used."""
    project = file.name.partition("-")[0]
    now = time.time()
    for other in file.parent.glob("*.sqlite3"):
        days = _OUTDATED_DAYS if other.name.startswith(f"{project}-") else _UNUSED_DAYS
        with suppress(OSError):
            if now - other.stat().st_mtime > days * 86_400:
                remove(other)


def remove(file: Path) -> None:
    """Take a store away, as far as that is possible."""
    # The journal first: it must never be applied to another file.
    for path in (file.with_name(f"{file.name}-journal"), file):
        with suppress(OSError):
            path.unlink(missing_ok=True)


def is_about_tables(error: sqlite3.OperationalError) -> bool:
    """Whether the store has other tables than ours: "table files has 1 columns but 5 values were supplied"."""
    return any(word in str(error) for word in ("column", "table"))


def stored_root(root: str) -> str:
    """A project's root as it stands in its store."""
    return root.encode("utf-8", "surrogateescape").decode("latin-1")


def file_name(root: Path) -> str:
    """The name of a project's store: another one for each version of the code that reads files."""
    return f"{_project_key(root)}-{_code_key()}.sqlite3"


def _project_key(root: Path) -> str:
    return hashlib.sha256(os.fsencode(root.absolute())).hexdigest()[:20]


@cache
def _code_key() -> str:
    """Changes when ranksafe, the interpreter (whose parser is used) or the code that reads files changes."""
    digest = hashlib.sha256(f"{_FORMAT} {__version__} {sys.version}".encode())
    package = Path(ranksafe.__file__).parent
    for folder in ("semantics", "source"):
        for path in sorted((package / folder).rglob("*")):
            if path.suffix in (".py", ".json"):
                stat = path.stat()
                digest.update(f"{path} {stat.st_size} {stat.st_mtime_ns}".encode())
    return digest.hexdigest()[:12]


def checksum(*parts: str) -> int:
    """Tells a text that was damaged from the one that was written."""
    return zlib.crc32("\0".join(parts).encode("utf-8", "surrogatepass"))
