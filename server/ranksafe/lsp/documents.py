"""What the client has open: text files here, notebooks in `ranksafe.lsp.notebooks`, both behind one face.

A document is analysed as one Python text. `locate` says where a place of that text is for the client, `place_of` the
other way round; for a text file both only change the unit of columns.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.uris import to_fs_path

from ranksafe.lsp.history import FindingHistory
from ranksafe.lsp.lines import LineBuffer, PositionEncoding, TouchedLines, without_end
from ranksafe.source.position import Position, Range

if TYPE_CHECKING:
    from ranksafe.checker.analysis import DocumentAnalysis
    from ranksafe.checker.finding import Finding
    from ranksafe.lsp.entry import Entry
    from ranksafe.lsp.run_findings import RunFinding

_LONGEST_NAME = 255
_LONGEST_PATH = 4095
"""Bytes and characters, on most systems."""


def path_of(uri: object) -> Path | None:
    """The file behind a URI; None for one that is no file, or that no system can have."""
    try:
        path = to_fs_path(uri) if isinstance(uri, str) else None
        longest = max(map(len, os.fsencode(path or "").split(b"/")))
    except ValueError:  # ``http://[``, half of a pair of surrogates
        return None
    if not path or "\0" in path or longest > _LONGEST_NAME or len(path) > _LONGEST_PATH:
        return None
    return Path(path)


@dataclass(frozen=True, slots=True)
class Place:
    """A range in one of the client's documents, in the client's units."""

    uri: str
    range: types.Range


@dataclass(slots=True)
class Report:
    """The diagnostics a pulling client was told last."""

    result_id: str
    items: list[types.Diagnostic]


class Document(ABC):
    """One open file or notebook and what is known of it."""

    def __init__(self, uri: str, encoding: PositionEncoding) -> None:
        self.uri = uri
        self.path = path_of(uri)
        self.encoding = encoding
        self.analysis: DocumentAnalysis | None = None
        self.history = FindingHistory()
        self.touched: TouchedLines | None = None
        """Edited since the last analysis."""
        self.cannot_be_analysed = False
        """An error of ours: until it is edited, it is as it was."""
        self.is_at_rest = False
        """The typing has paused: its findings are to be those of a fresh analysis."""
        self.last_cost_seconds = 0.0
        self.failed_rules: set[str] = set()
        """Rules that failed on this document: said once."""
        self.given_up: set[str] = set()
        """Functions that were not followed: said once."""
        self.says_something_else = False
        """To other files than when it was checked last; then it counts for its own names, too."""
        self.run_findings: list[RunFinding] = []
        """Shared with `ranksafe.lsp.run_findings.RunFindings`: edits take failures away there, too."""
        self.entry: Entry | None = None
        self.entry_is_known = False
        """Found again when lenses are asked for after the text changed and parses."""
        self.report: Report | None = None

    @property
    @abstractmethod
    def text(self) -> str:
        """The Python text to analyse."""

    @property
    def lines(self) -> list[str] | None:
        """The lines of `text` in a list of the caller's own, where they are at hand."""
        return None

    @property
    @abstractmethod
    def line_count(self) -> int:
        """How many lines `text` has."""

    @property
    @abstractmethod
    def uris(self) -> Sequence[str]:
        """The client's documents that carry diagnostics: the file itself, or the notebook's Python cells."""

    @abstractmethod
    def version_of(self, uri: str) -> int | None:
        """The version the client gave one of `uris`."""

    @abstractmethod
    def locate(self, place: Range) -> Place:
        """Where a range of `text` is for the client."""

    @abstractmethod
    def place_of(self, uri: str, position: types.Position) -> Position:
        """Where a client's position is in `text`."""

    @abstractmethod
    def line(self, number: int) -> str:
        """Line ``number`` of `text`, with its end."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is to be shown now."""
        return self.history.shown

    def findings_between(self, first: int, last: int) -> list[Finding]:
        """The findings that touch the lines ``first`` to ``last``."""
        return [
            finding
            for finding in self.findings
            if finding.range.start.line <= last and first <= finding.range.end.line
        ]

    @property
    def is_mostly_new(self) -> bool:
        """Whether most of the lines that were analysed last are there no more."""
        touched = self.touched
        if touched is None:
            return False
        return 2 * (touched.last - touched.first + 1) > self.line_count - touched.shift

    def forget_analysis(self) -> None:
        """Let go of the analysis: the next one starts from nothing."""
        if self.analysis is not None:
            self.analysis.close()
            self.analysis = None

    def touch(self, touched: TouchedLines) -> None:
        """Note an edit: later findings move, run failures on the touched lines are out of date."""
        self.touched = touched if self.touched is None else self.touched.then(touched)
        self.history.shift(touched)
        if self.run_findings:
            moved = (finding.shifted(touched) for finding in self.run_findings)
            self.run_findings[:] = [finding for finding in moved if finding is not None]
        if self.entry is not None:
            self.entry = self.entry.shifted(touched)


class TextDocument(Document):
    """An open Python file."""

    def __init__(self, item: types.TextDocumentItem, encoding: PositionEncoding) -> None:
        super().__init__(item.uri, encoding)
        self.version = item.version
        self.buffer = LineBuffer(item.text)

    @property
    def text(self) -> str:
        """What is analysed."""
        return self.buffer.text

    @property
    def lines(self) -> list[str] | None:
        """A copy of the buffer's lines."""
        return list(self.buffer.lines)

    @property
    def line_count(self) -> int:
        """How many lines the file has."""
        return len(self.buffer.lines)

    @property
    def uris(self) -> Sequence[str]:
        """What carries diagnostics."""
        return (self.uri,)

    def line(self, number: int) -> str:
        """One line of the text, with its end."""
        return self.buffer.line(number)

    def version_of(self, uri: str) -> int | None:  # noqa: ARG002
        """The file's version, whatever the URI."""
        return self.version

    def locate(self, place: Range) -> Place:
        """The same lines, the client's columns."""
        return Place(self.uri, client_range(self.buffer, place, self.encoding))

    def place_of(self, uri: str, position: types.Position) -> Position:  # noqa: ARG002
        """The same line, our column."""
        return place_in(self.buffer, position, self.encoding)

    def apply(self, version: int, changes: Sequence[types.TextDocumentContentChangeEvent]) -> None:
        """Take over a ``textDocument/didChange``."""
        self.version = version
        for touched in apply_changes(self.buffer, changes, self.encoding):
            self.touch(touched)


def apply_changes(
    buffer: LineBuffer,
    changes: Sequence[types.TextDocumentContentChangeEvent],
    encoding: PositionEncoding,
) -> Iterator[TouchedLines]:
    """Apply the client's changes one after the other, telling the lines each touched."""
    for change in changes:
        if isinstance(change, types.TextDocumentContentChangePartial):
            start = place_in(buffer, change.range.start, encoding)
            end = place_in(buffer, change.range.end, encoding)
            yield buffer.replace(Range(start, end), change.text)
        else:
            yield buffer.replace_all(change.text)


def place_in(buffer: LineBuffer, position: types.Position, encoding: PositionEncoding) -> Position:
    """A client's position in code points; beyond the document: its end."""
    if position.line >= len(buffer.lines):
        return Position(len(buffer.lines) - 1, len(buffer.lines[-1]))
    return Position(
        position.line, encoding.code_points(buffer.lines[position.line], position.character)
    )


def client_range(buffer: LineBuffer, place: Range, encoding: PositionEncoding) -> types.Range:
    """A range in the client's units."""
    return types.Range(
        _client_position(buffer, place.start, encoding),
        _client_position(buffer, place.end, encoding),
    )


def _client_position(
    buffer: LineBuffer, position: Position, encoding: PositionEncoding
) -> types.Position:
    line = without_end(buffer.line(position.line))
    return types.Position(position.line, encoding.units(line[: position.column]))


@dataclass(slots=True)
class OpenDocuments:
    """Every open document, by the client's URIs."""

    _documents: dict[str, Document] = field(default_factory=dict)
    _notebook_of_cell: dict[str, str] = field(default_factory=dict)

    def add(self, document: Document) -> None:
        """Put a document under its URI and those of its cells."""
        self._documents[document.uri] = document
        for uri in document.uris:
            if uri != document.uri:
                self._notebook_of_cell[uri] = document.uri

    def remove(self, uri: str) -> Document | None:
        """Forget a document and its cells."""
        document = self._documents.pop(uri, None)
        self._notebook_of_cell = {
            cell: notebook for cell, notebook in self._notebook_of_cell.items() if notebook != uri
        }
        return document

    def get(self, uri: str) -> Document | None:
        """The document with this URI, or the notebook with this cell."""
        return self._documents.get(self._notebook_of_cell.get(uri, uri))

    def text_document(self, uri: str) -> TextDocument | None:
        """The open text file with this URI."""
        document = self._documents.get(uri)
        return document if isinstance(document, TextDocument) else None

    def with_path(self, path: Path) -> Document | None:
        """The open document of a file."""
        return next((document for document in self if document.path == path), None)

    def __iter__(self) -> Iterator[Document]:
        return iter(tuple(self._documents.values()))
