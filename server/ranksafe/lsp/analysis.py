"""Brings what is known of one open document up to date: its findings, and where its script starts."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ranksafe.lsp.documents import Document
from ranksafe.lsp.projects import Projects

if TYPE_CHECKING:
    from ranksafe.checker.analysis import DocumentAnalysis
    from ranksafe.lsp.entry import Entry

logger = logging.getLogger(__name__)


def ensure(projects: Projects, document: Document) -> None:
    """Bring a document's findings up to date now."""
    if document.analysis is not None and document.touched is None:
        return
    started = time.thread_time()
    try:
        with no_garbage_collection():
            _analyse(projects, document)
    except Exception:
        # An error of ours must not take the findings away, nor the server down.
        logger.exception("the analysis of %s failed", document.uri)
        document.touched = None
        return
    document.last_cost_seconds = time.thread_time() - started


def reconfigure(projects: Projects, document: Document) -> bool:
    """Configuration, versions or other files changed: analyse a document anew; whether it has other findings now."""
    before = document.findings
    ensure(projects, document)
    if document.analysis is not None:
        with no_garbage_collection():
            document.analysis.reconfigure(projects.analyzer_for(document.path))
            _take_over(document, document.analysis)
    return document.findings != before


def settle(projects: Projects, document: Document) -> bool:
    """Bring the findings to what a fresh analysis would give; whether that changed anything."""
    ensure(projects, document)
    before = document.findings
    document.history.paused()
    analysis = document.analysis
    if document.says_something_else:
        document.says_something_else = False
        reconfigure(projects, document)
    elif analysis is not None and analysis.needs_settling:
        with no_garbage_collection():
            analysis.settle()
        _take_over(document, analysis)
    return document.findings != before


def entry_of(projects: Projects, document: Document) -> Entry | None:
    """Where the document's script starts; in half-typed text, where it was before, if that is known."""
    ensure(projects, document)
    analysis = document.analysis
    if analysis is None or document.entry_is_known:
        return document.entry
    if analysis.status == "complete" or document.entry is None:
        from ranksafe.lsp.entry import find_entry

        document.entry = find_entry(analysis.module, document.path, document.text)
    document.entry_is_known = True
    return document.entry


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


def _analyse(projects: Projects, document: Document) -> None:
    touched, document.touched = document.touched, None
    if document.analysis is None:
        analyzer = projects.analyzer_for(document.path)
        document.analysis = analyzer.open(document.path, document.text)
    elif touched is not None:
        document.analysis.change(document.text, touched.first, touched.last, document.lines)
    _take_over(document, document.analysis)


def _take_over(document: Document, analysis: DocumentAnalysis) -> None:
    document.history.update(analysis.findings, analysis.status, analysis.blanked)
    document.entry_is_known = False
    for code, error in analysis.rule_errors.items():
        if code not in document.failed_rules:
            document.failed_rules.add(code)
            logger.error("the rule %s failed on %s: %s", code, document.uri, error)
