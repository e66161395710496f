"""What an edit, a save or a change on disk means for the other open documents: those that depend on it are checked
again."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ranksafe.lsp.analysis import Analyses
from ranksafe.lsp.checks import Checks
from ranksafe.lsp.documents import Document, OpenDocuments
from ranksafe.lsp.projects import Projects
from ranksafe.lsp.turns import Job, Turns

if TYPE_CHECKING:
    from ranksafe.semantics.project.changes import Change
    from ranksafe.semantics.project.index import ProjectIndex

logger = logging.getLogger(__name__)

DEPENDENTS_SECONDS: Final = 0.1
"""Without a key for this long an edit is told to the documents that depend on the file."""
NOBODY_WAITS_SECONDS: Final = 0.2
"""The same where no open document imports it; it may still train their models."""
_SLICE_SECONDS: Final = 0.008
_LONG: Final = 50_000
"""Characters of a text that is read in turns before it is taken over: what takes tens of milliseconds."""


@dataclass(slots=True)
class ProjectUpdates:
    """Keeps the project's indexes up to date with the editor and the disk."""

    _documents: OpenDocuments
    _projects: Projects
    _analyses: Analyses
    _checks: Checks
    _turns: Turns
    _edited: dict[str, Document] = field(default_factory=dict)
    _timer: asyncio.TimerHandle | None = None
    _on_disk: deque[Path] = field(default_factory=deque)
    _changes: list[tuple[ProjectIndex, Change]] = field(default_factory=list)
    _following: Iterator[int] | None = None
    """What the open documents depend on, being found out for the changes that wait."""
    _stepping: bool = False
    _read_ahead: dict[str, Job] = field(default_factory=dict)

    # -- events

    def opened(self, document: Document) -> None:
        """A document was opened; its text counts from now on, not the disk's."""
        self._take_over(document)
        self._go_on()

    def edited(self, document: Document) -> None:
        """A document was edited: tell others when the typing has paused."""
        if document.path is None:
            return
        self._edited[document.uri] = document
        waits = self._projects.has_open_dependents(document)
        self._wait(DEPENDENTS_SECONDS if waits else NOBODY_WAITS_SECONDS)

    def saved(self, document: Document) -> None:
        """A document was saved: it may be a new file."""
        self._edited.pop(document.uri, None)
        self._take_over(document)
        self._go_on()

    def closed(self, document: Document) -> None:
        """A document was closed: what stands on the disk counts again."""
        self._edited.pop(document.uri, None)
        self._leave(document)
        if document.path is not None:
            self._changes += self._projects.update(document.path, None)
            self._go_on()

    def changed_on_disk(self, paths: Iterable[Path]) -> None:
        """Files came, went or were written; hundreds at once after a checkout. Of a folder that went, only its own
        name may be told."""
        for path in paths:
            if path.suffix == ".py":
                self._on_disk.append(path)
            elif not path.exists():
                self._on_disk.extend(self._projects.known_below(path))
        self._go_on()

    # -- work

    def _typing_paused(self) -> None:
        self._timer = None
        for document in list(self._edited.values()):
            # What is half typed would take away what others import until the line is complete.
            if self._analyses.is_going_on(document):
                self._wait(DEPENDENTS_SECONDS)
            elif document.analysis is None or document.analysis.status == "complete":
                del self._edited[document.uri]
                self._take_over(document)
        self._go_on()

    def _wait(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._typing_paused)

    def _take_over(self, document: Document) -> None:
        path, text = document.path, document.text
        if path is None:
            return
        self._leave(document)
        if len(text) < _LONG:
            self._has_text(document, path, text)
            return

        def read(error: Exception | None) -> None:
            del self._read_ahead[document.uri]
            if error is not None:
                logger.error("reading %s ahead failed", document.uri, exc_info=error)
            self._has_text(document, path, text)
            self._go_on()

        steps = iter([lambda: self._projects.update_ahead(path, text)])
        self._read_ahead[document.uri] = self._turns.start(steps, read)

    def _leave(self, document: Document) -> None:
        job = self._read_ahead.pop(document.uri, None)
        if job is not None:
            self._turns.abandon(job)

    def _has_text(self, document: Document, path: Path, text: str) -> None:
        changes = self._projects.update(path, text)
        if document.analysis is not None and any(change.summary for _, change in changes):
            document.says_something_else = True
        self._changes += changes

    def _go_on(self) -> None:
        if not self._stepping and (self._on_disk or self._changes):
            self._stepping = True
            asyncio.get_running_loop().call_soon(self._step)

    def _step(self) -> None:
        self._stepping = False
        if self._on_disk:
            self._look_at_disk()
        elif self._changes:
            if self._has_followed():
                self._find_affected()
        self._go_on()

    def _look_at_disk(self) -> None:
        started = time.perf_counter()
        while self._on_disk and time.perf_counter() - started < _SLICE_SECONDS:
            path = self._on_disk.popleft()
            document = self._documents.with_path(path)
            if document is None:
                self._changes += self._projects.update(path, None)
            elif self._analyses.is_going_on(document):
                self._edited[document.uri] = document
                self._wait(DEPENDENTS_SECONDS)
            elif document.analysis is None or document.analysis.status == "complete":
                self._take_over(document)

    def _has_followed(self) -> bool:
        """Find out a little more of what the open documents depend on; whether all is known."""
        if self._following is None:
            self._following = self._projects.following()
        until = time.perf_counter() + _SLICE_SECONDS
        for _ in self._following:
            if time.perf_counter() >= until:
                return False
        self._following = None
        return True

    def _find_affected(self) -> None:
        changes, self._changes = self._changes, []
        for document in self._projects.affected(changes):
            self._analyses.analyse_again(document, self._checks.show_if_changed)
