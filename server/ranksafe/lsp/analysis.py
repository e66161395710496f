"""Brings what is known of the open documents up to date, in turns: their findings, and where their scripts start.

An analysis that was begun is finished before the text typed meanwhile is taken over, which then costs little; unless
most of the text is another one, or what it was analysed with.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from ranksafe.lsp.documents import Document, OpenDocuments
from ranksafe.lsp.lines import TouchedLines
from ranksafe.lsp.projects import Projects
from ranksafe.lsp.turns import Job, Turns

if TYPE_CHECKING:
    from ranksafe.checker.analysis import Analyzer, DocumentAnalysis
    from ranksafe.checker.finding import Finding
    from ranksafe.lsp.entry import Entry

logger = logging.getLogger(__name__)

Then = Callable[[Document, bool], None]
"""Called with a document that is up to date, and whether it has other findings than before."""


@dataclass(slots=True)
class _Due:
    """A document that is being brought up to date."""

    document: Document
    before: tuple[Finding, ...]
    job: Job | None = None
    then: dict[Then, None] = field(default_factory=dict)
    waiting: list[asyncio.Future[None]] = field(default_factory=list)


class Analyses:
    """The analyses of the open documents."""

    def __init__(self, documents: OpenDocuments, projects: Projects, turns: Turns) -> None:
        self._documents = documents
        self._projects = projects
        self._turns = turns
        self._due: dict[str, _Due] = {}
        self._has_ended = False

    def bring_up(self, document: Document, then: Then | None = None) -> None:
        """Bring a document's findings up to date soon, and do ``then`` what is to be done."""
        due = self._due.get(document.uri)
        if due is None:
            due = self._due[document.uri] = _Due(document, document.findings)
            self._start(due)
        if then is not None:
            due.then[then] = None

    def analyse_again(self, document: Document, then: Then) -> None:
        """Configuration, versions or other files changed: analyse a document anew."""
        self._leave(document)
        self.bring_up(document, then)

    def edited(self, document: Document) -> None:
        """A document has another text."""
        document.cannot_be_analysed = document.is_at_rest = False
        due = self._due.get(document.uri)
        if due is not None and due.job is not None:
            if due.job.taken and document.is_mostly_new:
                self._leave(document)
            else:
                self._turns.prefer(due.job)

    def closed(self, document: Document) -> None:
        """A document was closed: nobody waits for it any more."""
        due = self._due.pop(document.uri, None)
        if due is not None:
            if due.job is not None:
                self._turns.abandon(due.job)
            _release(due)
        document.forget_analysis()

    def end(self) -> None:
        """The client goes away: whoever waits gets what there is."""
        self._has_ended = True
        for due in self._due.values():
            _release(due)
        self._due.clear()

    async def current(self, uri: str) -> Document | None:
        """The open document with this URI, or with this cell, once it is up to date."""
        while (document := self._documents.get(uri)) is not None and self._is_behind(document):
            self.bring_up(document)
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._due[document.uri].waiting.append(waiting)
            await waiting
        return document

    def is_going_on(self, document: Document) -> bool:
        """Whether a document is being brought up to date."""
        return document.uri in self._due

    def _is_behind(self, document: Document) -> bool:
        if self._has_ended or document.cannot_be_analysed:
            return False
        is_new = document.analysis is None or document.touched is not None
        return is_new or self.is_going_on(document)

    def _leave(self, document: Document) -> None:
        """Let go of the analysis there is, or of what there is of it."""
        due = self._due.get(document.uri)
        if due is not None and due.job is not None:
            self._turns.abandon(due.job)
            self._start(due)
        document.cannot_be_analysed = False
        document.forget_analysis()

    def _start(self, due: _Due) -> None:
        due.job = self._turns.start(
            _steps(self._projects, due.document), lambda error: self._ended(due, error)
        )

    def _ended(self, due: _Due, error: Exception | None) -> None:
        document = due.document
        if error is not None:
            # An error of ours must not take the findings away, nor the server down.
            logger.error("the analysis of %s failed", document.uri, exc_info=error)
            document.forget_analysis()
            document.cannot_be_analysed = True
        elif due.job is not None:
            document.last_cost_seconds = due.job.seconds
        self._due.pop(document.uri, None)
        try:
            for then in due.then:
                then(document, document.findings != due.before)
        finally:
            _release(due)


def _release(due: _Due) -> None:
    for waiting in due.waiting:
        if not waiting.done():
            waiting.set_result(None)


def _steps(projects: Projects, document: Document) -> Iterator[Callable[[], object]]:
    """What brings a document up to date, one after the other. It may be edited while one is done."""
    while not document.cannot_be_analysed:
        analysis = document.analysis
        touched, document.touched = document.touched, None
        if analysis is None:
            document.says_something_else = False
            opened: list[DocumentAnalysis] = []
            yield partial(_open, projects.analyzer_for(document.path), document, opened)
            analysis = document.analysis = opened[0]
        elif touched is not None:
            yield partial(_change, analysis, document.text, touched, document.lines)
        elif document.is_at_rest:
            document.is_at_rest = False
            document.history.paused()
            if document.says_something_else:
                document.forget_analysis()
                continue
            if not analysis.needs_settling:
                return
            yield analysis.settle
        else:
            return
        # Of a text that is there no more nothing is shown.
        if document.touched is None:
            _take_over(document, analysis)


def _open(analyzer: Analyzer, document: Document, opened: list[DocumentAnalysis]) -> None:
    analysis = analyzer.open(document.path, document.text)
    _ = analysis.findings
    opened.append(analysis)


def _change(
    analysis: DocumentAnalysis, text: str, touched: TouchedLines, lines: list[str] | None
) -> None:
    analysis.change(text, touched.first, touched.last, lines)
    _ = analysis.findings


def _take_over(document: Document, analysis: DocumentAnalysis) -> None:
    document.history.update(analysis.findings, analysis.status, analysis.blanked)
    document.entry_is_known = False
    for code, error in analysis.rule_errors.items():
        if code not in document.failed_rules:
            document.failed_rules.add(code)
            logger.error("the rule %s failed on %s: %s", code, document.uri, error)


def entry_of(document: Document) -> Entry | None:
    """Where the script of a document that is up to date starts; in half-typed text, where it was before, if that is
    known."""
    analysis = document.analysis
    if analysis is None or document.entry_is_known:
        return document.entry
    if analysis.status == "complete" or document.entry is None:
        from ranksafe.lsp.entry import find_entry

        document.entry = find_entry(analysis.module, document.path, document.text)
    document.entry_is_known = True
    return document.entry
