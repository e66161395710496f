"""When documents are analysed: at once while that is cheap, later while keys come faster, again when typing pauses."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ranksafe.checker.analysis import DocumentAnalysis
    from ranksafe.checker.finding import Finding
    from ranksafe.checker.rule_folder import RuleFolder
    from ranksafe.lsp.documents import Document
    from ranksafe.lsp.entry import Entry
    from ranksafe.lsp.server import RanksafeServer

logger = logging.getLogger(__name__)

LONGEST_DELAY_SECONDS: Final = 0.05
"""An analysis waits as long as the last one took, so that keys typed meanwhile share one, but not longer than this."""
CHEAP_SECONDS: Final = 0.02
"""Below this it does not wait: all input that has arrived is taken before an analysis starts anyway."""
IDLE_SECONDS: Final = 0.3
"""Without a key for this long the typing has paused."""
REST_SECONDS: Final = 2.0
"""After this a full garbage collection, tens of milliseconds with large files open, is unlikely to meet a key."""


class Checks:
    """Keeps the findings of open documents up to date."""

    def __init__(self, server: RanksafeServer) -> None:
        self._server = server
        self._due: dict[str, asyncio.Handle] = {}
        self._idle: asyncio.TimerHandle | None = None
        self._rest: asyncio.TimerHandle | None = None
        self._edited: set[str] = set()
        self._failed: set[tuple[str, str]] = set()
        """Rules that failed on a document: said once."""

    # -- events

    def opened(self, document: Document) -> None:
        """A document was opened: analyse and show it."""
        document.run_findings = self._server.run_findings.of(document.path)
        self._server.project_updates.opened(document)
        for uri in document.uris:
            self._server.publisher.taken_over(uri)
        self.ensure(document)
        self._server.publisher.show(document)
        self._server.lens_refresh.may_be_missed()
        self._server.project_build.follow(document)

    def changed(self, document: Document) -> None:
        """A document was edited: have it analysed soon. A pulling client asks by itself."""
        self._edited.add(document.uri)
        self._wait_for_idleness()
        self._server.project_updates.edited(document)
        delay = document.last_cost_seconds
        loop = asyncio.get_running_loop()
        if document.uri in self._due:
            return
        if delay < CHEAP_SECONDS:
            self._due[document.uri] = loop.call_soon(self._check, document)
        else:
            delay = min(delay, LONGEST_DELAY_SECONDS)
            self._due[document.uri] = loop.call_later(delay, self._check, document)

    def closed(self, document: Document) -> None:
        """A document was closed: nothing is shown for it any more, except a run's failures."""
        due = self._due.pop(document.uri, None)
        if due is not None:
            due.cancel()
        self._edited.discard(document.uri)
        self._server.documents.remove(document.uri)
        self._server.project_updates.closed(document)
        for uri in document.uris:
            self._server.publisher.clear(uri)
        self._server.publisher.show_unopened(self._server.unopened_failures())

    def saved(self, uri: str) -> None:
        """A document was saved: others that import it may mean something else now."""
        saved = self._server.documents.get(uri)
        if saved is not None:
            self._server.project_updates.saved(saved)

    def check_again(self) -> None:
        """Configuration, versions, trust or other files changed: analyse everything anew."""
        self._check_again(list(self._server.documents))
        self._server.lenses_changed()

    def check_one_again(self, document: Document) -> bool:
        """Other files changed: analyse one document anew and show it; whether it has other findings now."""
        before = document.findings
        self._reconfigure(document)
        if document.findings == before:
            return False
        self._server.publisher.show(document)
        return True

    @property
    def is_typing(self) -> bool:
        """Whether a key came a moment ago."""
        return self._idle is not None

    def _check_again(self, documents: list[Document]) -> None:
        for document in documents:
            self._reconfigure(document)
        self._server.publisher.show_changed(documents)

    def _reconfigure(self, document: Document) -> None:
        self.ensure(document)
        if document.analysis is not None:
            with no_garbage_collection():
                analyzer = self._server.projects.analyzer_for(document.path)
                document.analysis.reconfigure(analyzer)
                self._take_over(document, document.analysis)

    # -- analysis

    def ensure(self, document: Document) -> None:
        """Bring a document's findings up to date now."""
        if document.analysis is not None and document.touched is None:
            return
        started = time.thread_time()
        try:
            with no_garbage_collection():
                self._analyse(document)
        except Exception:
            # An error of ours must not take the findings away, nor the server down.
            logger.exception("the analysis of %s failed", document.uri)
            document.touched = None
            return
        document.last_cost_seconds = time.thread_time() - started

    def entry_of(self, document: Document) -> Entry | None:
        """Where the document's script starts; in half-typed text, where it was before, if that is known."""
        self.ensure(document)
        analysis = document.analysis
        if analysis is None or document.entry_is_known:
            return document.entry
        if analysis.status == "complete" or document.entry is None:
            from ranksafe.lsp.entry import find_entry

            document.entry = find_entry(analysis.module, document.path, document.text)
        document.entry_is_known = True
        return document.entry

    def page_of(self, code: str) -> str | None:
        """Where the page of a rule is found on the web."""
        rule = self.rule(code)
        return rule.url if rule is not None else None

    def rule(self, code: str) -> RuleFolder | None:
        """The rule with this code."""
        return self._server.projects.registry.by_code(code)

    def findings_between(self, document: Document, first: int, last: int) -> list[Finding]:
        """The findings that touch the lines ``first`` to ``last``."""
        return [
            finding
            for finding in document.findings
            if finding.range.start.line <= last and first <= finding.range.end.line
        ]

    def _analyse(self, document: Document) -> None:
        touched, document.touched = document.touched, None
        if document.analysis is None:
            analyzer = self._server.projects.analyzer_for(document.path)
            document.analysis = analyzer.open(document.path, document.text)
        elif touched is not None:
            document.analysis.change(document.text, touched.first, touched.last, document.lines)
        self._take_over(document, document.analysis)

    def _take_over(self, document: Document, analysis: DocumentAnalysis) -> None:
        document.history.update(analysis.findings, analysis.status, analysis.blanked)
        document.entry_is_known = False
        for code, error in analysis.rule_errors.items():
            if (code, document.uri) not in self._failed:
                self._failed.add((code, document.uri))
                logger.error("the rule %s failed on %s: %s", code, document.uri, error)

    def _check(self, document: Document) -> None:
        self._due.pop(document.uri, None)
        if self._server.publisher.client_pulls and self._server.is_pulled(document):
            return
        self.ensure(document)
        self._server.publisher.show(document)

    # -- when typing pauses

    def _wait_for_idleness(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None
        self._idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._typing_paused)

    def _typing_paused(self) -> None:
        self._idle = None
        edited, self._edited = self._edited, set()
        changed = [
            document
            for document in self._server.documents
            if document.uri in edited and self._settle(document)
        ]
        if changed:
            self._server.publisher.show_changed(changed)
        if edited:
            self._server.lenses_changed()
        gc.collect(1)
        self._rest = asyncio.get_running_loop().call_later(REST_SECONDS, gc.collect)

    def _settle(self, document: Document) -> bool:
        """Bring the findings to what a fresh analysis would give; whether that changed anything."""
        self.ensure(document)
        before = document.findings
        document.history.paused()
        analysis = document.analysis
        if self._server.project_updates.says_something_else(document):
            self._reconfigure(document)
        elif analysis is not None and analysis.needs_settling:
            with no_garbage_collection():
                analysis.settle()
            self._take_over(document, analysis)
        return document.findings != before


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Cyclic collection during an analysis costs up to ten times the analysis; it runs when typing pauses."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
