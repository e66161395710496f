"""What is known of a project's files, kept on disk between sessions.

One SQLite file per project and per version of the code that reads files. What is kept of a text is found by the text's
hash; a file's hash is taken for granted while its size and modification time are the same. Several servers and command
lines may use one file at once: all writing is done in short transactions. A store that is damaged, locked, read-only
or on a full disk is no store, never an error.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

from ranksafe.semantics.project.store_file import (
    Batch,
    Stamp,
    checksum,
    file_name,
    is_about_tables,
    remove,
    stored_root,
    write,
)

__all__ = ["Batch", "Outcome", "Stamp", "SummaryStore", "projects_folder"]

_SETTLED_SECONDS: Final = 2.0
"""A file written more recently may be written again without its modification time telling."""
_READING_WAITS_SECONDS: Final = 0.02
WORTH_A_FILE: Final = 200
"""Files below which reading them again is as fast as opening a database."""

Outcome = Literal["written", "busy", "impossible"]


def projects_folder(environment: Mapping[str, str]) -> Path:
    """Where the stores are: ``ranksafe/projects`` below XDG_CACHE_HOME, else below ``~/.cache``."""
    base = environment.get("XDG_CACHE_HOME")
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    return root / "ranksafe" / "projects"


class SummaryStore:
    """The store of one project. Only `write` may be called from another thread.

    ``folder``: where stores are; None: nothing is kept beyond this process.
    """

    def __init__(self, folder: Path | None, root: Path) -> None:
        self._root = str(root.absolute())
        self._folder = folder
        self._connection: sqlite3.Connection | None = None
        self._opened = False
        self._stamps: dict[str, Stamp] = {}
        self._hashes: set[str] = set()
        self._unsaved = Batch()
        self._writing = Batch()
        self._gave_up = folder is None

    @cached_property
    def file(self) -> Path | None:
        """Where the store is, or will be."""
        return None if self._folder is None else self._folder / file_name(Path(self._root))

    # -- reading

    def stamp(self, path: Path) -> Stamp | None:
        """What a file was like when it was read last."""
        self._open()
        return self._stamps.get(self._key(path))

    def has_summary(self, content_hash: str) -> bool:
        """Whether `summary` has an answer, most likely."""
        self._open()
        return content_hash in self._hashes

    def summary(self, content_hash: str) -> str | None:
        """The summary of a text."""
        for batch in (self._unsaved, self._writing):
            if content_hash in batch.summaries:
                return batch.summaries[content_hash]
        rows = self._select("SELECT text, checksum FROM summaries WHERE hash = ?", content_hash)
        return _checked(rows, content_hash)

    def get_extra(self, kind: str, path: Path, content_hash: str) -> str | None:
        """What `put_extra` was given for a file with this text."""
        key = (kind, self._key(path))
        for batch in (self._unsaved, self._writing):
            if key in batch.extras:
                known_hash, text = batch.extras[key]
                return text if known_hash == content_hash else None
        query = "SELECT text, checksum FROM extras WHERE kind = ? AND path = ? AND hash = ?"
        return _checked(self._select(query, *key, content_hash), *key, content_hash)

    # -- what is to be kept

    def put_stamp(self, path: Path, stamp: Stamp) -> None:
        """Remember what a file was like when it was read; the stat must be older than the reading."""
        self._open()
        key = self._key(path)
        if time.time_ns() - stamp.mtime_ns < _SETTLED_SECONDS * 1e9:
            # Its hash must be asked for next time.
            self._unsaved.stamps[key] = stamp._replace(mtime_ns=-1)
        else:
            self._unsaved.stamps[key] = stamp
        self._stamps[key] = self._unsaved.stamps[key]

    def put_summary(self, content_hash: str, text: str) -> None:
        """Remember the summary of a text."""
        self._hashes.add(content_hash)
        self._unsaved.summaries[content_hash] = text

    def put_extra(self, kind: str, path: Path, content_hash: str, text: str) -> None:
        """Remember something else that was computed from a file with this text, in place of what it was before.

        It is kept as long as no code below ``semantics`` and ``source`` changes; what else it depends on must be in
        ``kind`` or in ``text``.
        """
        self._unsaved.extras[kind, self._key(path)] = (content_hash, text)

    # -- writing

    @property
    def unsaved(self) -> int:
        """How many files' facts wait to be written."""
        return 0 if self._gave_up else len(self._unsaved)

    def take_unsaved(self, present: Collection[Path] | None = None) -> Batch | None:
        """What should be written now, to be handed to `write` and then to `written`; None: nothing is worth it.

        ``present``: all files of the project; that others are gone is worth it, too.
        """
        if self._gave_up or len(self._writing):
            return None
        self._open()
        if not len(self._unsaved):
            if present is None or len(self._stamps) <= len(present):
                return None
        if self._connection is None and len(self._stamps) < WORTH_A_FILE:
            return None
        self._writing, self._unsaved = self._unsaved, Batch()
        return self._writing

    def write(self, batch: Batch, present: Collection[Path] | None = None) -> Outcome:
        """Write a batch, in one transaction. It may wait for others for seconds.

        ``present``: all files of the project; what is kept of others is taken away.
        """
        assert self.file is not None
        keys = None if present is None else {self._key(path) for path in present}
        for _ in range(2):
            try:
                write(self.file, self._root, batch, keys)
            except sqlite3.OperationalError as error:
                if not is_about_tables(error):
                    return "busy" if "locked" in str(error) else "impossible"
                remove(self.file)
            except sqlite3.DatabaseError:
                remove(self.file)
            except (OSError, ValueError, OverflowError):
                return "impossible"
            else:
                return "written"
        return "impossible"

    def written(self, outcome: Outcome) -> None:
        """`write` has ended; what it could not write stays in memory."""
        if outcome == "written":
            self.close()
            self._connect()
        else:
            self._writing.take_over(self._unsaved)
            self._unsaved = self._writing
            self._gave_up = outcome == "impossible"
        self._writing = Batch()

    def flush(self, present: Collection[Path] | None = None) -> None:
        """Write what is worth it, here and now."""
        batch = self.take_unsaved(present)
        if batch is not None:
            self.written(self.write(batch, present))

    def drain(self) -> Batch | None:
        """What is not saved, for another process to `add`; None: nothing."""
        if not len(self._unsaved):
            return None
        batch, self._unsaved = self._unsaved, Batch()
        return batch

    def add(self, batch: Batch) -> None:
        """Take over what another process has found out."""
        self._open()
        self._unsaved.take_over(batch)
        self._stamps |= batch.stamps
        self._hashes |= batch.summaries.keys()

    def close(self) -> None:
        """Give the file free."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- the file

    def _key(self, path: Path) -> str:
        text = str(path)
        key = text[len(self._root) + 1 :] if text.startswith(self._root + os.sep) else text
        # A name that is no text can be kept all the same.
        return key if key.isascii() else key.encode("utf-8", "surrogateescape").decode("latin-1")

    def _open(self) -> None:
        if self._opened:
            return
        self._opened = True
        connection = self._connect()
        if connection is None or self.file is None:
            return
        try:
            rows = connection.execute("SELECT * FROM files").fetchall()
            stamps = (
                (str(path), Stamp(int(size), int(mtime), str(hash_), bool(trains)), written)
                for path, size, mtime, hash_, trains, written in rows
            )
            self._stamps = {
                path: stamp
                for path, stamp, written in stamps
                if written == checksum(path, *map(str, stamp))
            }
            rows = connection.execute("SELECT hash FROM summaries").fetchall()
            self._hashes = {str(hash_) for (hash_,) in rows}
            with suppress(OSError):
                os.utime(self.file)
        except (sqlite3.Error, TypeError, ValueError):
            self._stamps, self._hashes = {}, set()
            self.close()

    def _connect(self) -> sqlite3.Connection | None:
        try:
            if self.file is None or not self.file.is_file():
                return None
            # Analyses of the server have threads of their own, of which one at a time runs.
            self._connection = sqlite3.connect(
                f"{self.file.as_uri()}?mode=ro",
                uri=True,
                timeout=_READING_WAITS_SECONDS,
                check_same_thread=False,
            )
            (root,) = self._connection.execute(
                "SELECT value FROM meta WHERE key = 'root'"
            ).fetchone()
            if root != stored_root(self._root):
                self.close()
        except (sqlite3.Error, OSError, TypeError, ValueError):
            self.close()
        return self._connection

    def _select(self, query: str, *values: str) -> list[tuple[object, ...]]:
        self._open()
        if self._connection is None:
            return []
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error:
            return []


def _checked(rows: list[tuple[object, ...]], *key: str) -> str | None:
    for text, written in rows:
        if isinstance(text, str) and written == checksum(text, *key):
            return text
    return None
