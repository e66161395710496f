"""Finds out about the whole project while nobody waits: in slices between keys and requests, with progress.

Every question is answered without it, only later. What is found is written to the store beside the loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ranksafe.lsp.checks import Checks
from ranksafe.lsp.connection import Connection
from ranksafe.lsp.documents import Document
from ranksafe.lsp.messages import INDEX_TITLE, INDEXED
from ranksafe.lsp.progress import Progress
from ranksafe.lsp.projects import Projects
from ranksafe.lsp.turns import no_garbage_collection

if TYPE_CHECKING:
    from ranksafe.semantics.project.index import ProjectIndex

logger = logging.getLogger(__name__)

SHOWN_FROM: Final = 300
"""Files of a project below which nobody would see the progress."""
_SLICE_SECONDS: Final = 0.008
_PAUSE_SECONDS: Final = 0.001
_PAUSE_WHILE_TYPING_SECONDS: Final = 0.05
_LONGEST_BYTES: Final = 150_000
"""A longer file takes longer than a slice may; it is read when somebody asks about it."""
_BATCH: Final = 300


@dataclass(slots=True)
class ProjectBuild:
    """One task for all indexes of the workspace."""

    _client: Connection
    _projects: Projects
    _checks: Checks
    _to_build: deque[ProjectIndex] = field(default_factory=deque)
    _to_follow: deque[tuple[ProjectIndex, Path]] = field(default_factory=deque)
    _seen: set[Path] = field(default_factory=set)
    _task: asyncio.Task[None] | None = None
    _cancelled: bool = False

    def start(self) -> None:
        """Build the indexes of the open folders that have not been built yet."""
        for index in self._projects.indexes():
            if index.root not in self._seen:
                self._seen.add(index.root)
                self._to_build.append(index)
        self._work()

    def follow(self, document: Document) -> None:
        """Find out what an opened document depends on, so that edits elsewhere reach it at once."""
        if document.path is not None:
            for index in self._projects.indexes_of(document.path):
                self._to_follow.append((index, document.path))
            self._work()

    def end(self) -> None:
        """Stop, and keep what was found."""
        if self._task is not None:
            self._task.cancel()
        if self._seen:
            for index in self._projects.indexes():
                index.store.flush()
                index.store.close()

    def _work(self) -> None:
        if self._task is None and (self._to_build or self._to_follow):
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._to_build or self._to_follow:
                if self._to_build:
                    await self._build(self._to_build.popleft())
                else:
                    index, path = self._to_follow.popleft()
                    await self._in_slices(((0, 0) for _ in index.closure_steps(path)), index, None)
        except Exception:
            logger.exception("the project could not be looked at ahead of questions")
        finally:
            self._task = None

    async def _build(self, index: ProjectIndex) -> None:
        progress = Progress(self._client, INDEX_TITLE.filled(folder=index.root.name))
        self._cancelled = False
        progress.on_cancel(self._cancel)
        started = time.perf_counter()
        message = ""
        try:
            await self._in_slices(index.build(longest=_LONGEST_BYTES), index, progress)
            if not self._cancelled:
                await self._save(index, everything=True)
                seconds = f"{time.perf_counter() - started:.1f}"
                indexed = INDEXED.filled(count=len(index.files()), seconds=seconds)
                message = indexed.in_language(self._client.language)
        finally:
            progress.end(message)

    def _cancel(self) -> None:
        self._cancelled = True

    async def _in_slices(
        self, steps: Iterator[tuple[int, int]], index: ProjectIndex, progress: Progress | None
    ) -> None:
        shown = -1
        while True:
            done = self._slice(steps)
            if done is None or (progress is not None and self._cancelled):
                return
            files, total = done
            if progress is not None and files and total >= SHOWN_FROM:
                if shown < 0:
                    await progress.begin(percentage=0)
                if shown != (shown := 100 * files // total):
                    progress.report(f"{files}/{total}", shown)
            if index.store.unsaved >= _BATCH:
                await self._save(index)
            typing = self._checks.is_typing
            await asyncio.sleep(_PAUSE_WHILE_TYPING_SECONDS if typing else _PAUSE_SECONDS)

    def _slice(self, steps: Iterator[tuple[int, int]]) -> tuple[int, int] | None:
        until = time.perf_counter() + _SLICE_SECONDS
        done = None
        with no_garbage_collection():
            for done in steps:
                if time.perf_counter() >= until:
                    return done
        return None

    async def _save(self, index: ProjectIndex, *, everything: bool = False) -> None:
        present = list(index.files()) if everything else None
        batch = index.store.take_unsaved(present)
        if batch is None:
            return
        loop = asyncio.get_running_loop()
        index.store.written(await loop.run_in_executor(None, index.store.write, batch, present))
