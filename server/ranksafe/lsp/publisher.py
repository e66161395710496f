"""Diagnostics: findings and run failures as the client shows them, pulled if the client can, else pushed.

Two kinds of places are pushed even to a client that pulls, because it would never ask for them: notebook cells, and
failures of a run in files that are not open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lsprotocol import types
from pygls.uris import from_fs_path

from ranksafe.checker.analysis import LEFT_OUT, given_up
from ranksafe.checker.finding import Finding, Level, Related
from ranksafe.lsp.connection import Connection
from ranksafe.lsp.documents import Document, Report, TextDocument, client_range
from ranksafe.lsp.lines import LineBuffer
from ranksafe.lsp.messages import MORE_FINDINGS
from ranksafe.lsp.projects import Projects
from ranksafe.lsp.run_findings import RunFinding
from ranksafe.lsp.testimony import Testimony
from ranksafe.lsp.workspace import Workspace
from ranksafe.source.position import Position, Range

SOURCE: Final = "ranksafe"
_MOST_FINDINGS: Final = 1_000
"""Of one document that are shown, errors first; of more VS Code shows only the first 1,000 anyway
(microsoft/vscode#186604), and each takes time to tell."""
_BEGINNING: Final = Range(Position(0, 0), Position(0, 0))
RUN_SOURCE: Final = "ranksafe run"
FIT_SOURCE: Final = "ranksafe fit"

_SEVERITY: Final = {
    Level.ERROR: types.DiagnosticSeverity.Error,
    Level.WARNING: types.DiagnosticSeverity.Warning,
    Level.INFORMATION: types.DiagnosticSeverity.Information,
}
_UNNECESSARY: Final = frozenset({"RS001"})


@dataclass(slots=True)
class Publisher:
    """Brings diagnostics to the client."""

    _client: Connection
    _workspace: Workspace
    _projects: Projects
    client_pulls: bool = False
    _reports: int = 0
    _refresh: asyncio.Handle | None = None
    """Due when all that changes at once has changed."""
    _pushed_unopened: set[str] = field(default_factory=set)
    _unopened: dict[Path, tuple[tuple[int, int], LineBuffer]] = field(default_factory=dict)
    """Lines of files that are not open but named by a finding's related places or a failure's frames; and of when they
    are: an analysis may have seen a change that nobody has told of yet."""

    # -- what is shown

    def diagnostics(self, document: Document) -> dict[str, list[types.Diagnostic]]:
        """The diagnostics of each of the document's URIs."""
        self._tell_given_up(document)
        result: dict[str, list[types.Diagnostic]] = {uri: [] for uri in document.uris}
        standing = self._workspace.testimonies.of(document.path, document.text)
        for finding in _worst(document.findings):
            place = document.locate(finding.range)
            if place.uri in result:
                result[place.uri].append(self._of_finding(document, finding, standing))
        for failure in document.run_findings:
            place = document.locate(failure.range)
            if place.uri in result:
                result[place.uri].append(self._of_failure(failure, place.range))
        place = document.locate(_BEGINNING)
        if place.uri in result:
            result[place.uri] += self._left_out(document, place.range)
        return result

    def _left_out(self, document: Document, place: types.Range) -> Iterator[types.Diagnostic]:
        """What of a document was too large to be checked, or too much to be shown."""
        names = () if document.analysis is None else document.analysis.given_up
        said = [given_up(name) for name in sorted(LEFT_OUT.intersection(names))]
        found = len(document.findings)
        if found > _MOST_FINDINGS:
            said.append(MORE_FINDINGS.filled(shown=f"{_MOST_FINDINGS:,}", found=f"{found:,}"))
        for message in said:
            yield types.Diagnostic(
                place,
                message.in_language(self._client.language),
                types.DiagnosticSeverity.Information,
                source=SOURCE,
            )

    def _tell_given_up(self, document: Document) -> None:
        names = () if document.analysis is None else document.analysis.given_up
        for name in sorted(set(names) - document.given_up):
            document.given_up.add(name)
            sentence = given_up(name).in_language(self._client.language)
            self._client.log(f"{document.path or document.uri}: {sentence}")

    def is_pulled(self, document: Document) -> bool:
        """Whether the client asks for this document's diagnostics itself."""
        return self.client_pulls and isinstance(document, TextDocument)

    def show(self, document: Document) -> None:
        """Push the document's diagnostics, unless the client asks for them itself."""
        if self.is_pulled(document):
            return
        for uri, items in self.diagnostics(document).items():
            self._publish(uri, items, document.version_of(uri))

    def show_changed(self, documents: Iterable[Document]) -> None:
        """As `show`, for changes the client does not know of: one that pulls is told to ask again."""
        documents = list(documents)
        for document in documents:
            self.show(document)
        if any(map(self.is_pulled, documents)):
            self.refresh_pulled()

    def refresh_pulled(self) -> None:
        """Have a pulling client ask again; one that does not pull has been shown everything."""
        if self.client_pulls and self._refresh is None:
            self._refresh = asyncio.get_running_loop().call_soon(self._do_refresh)

    def _do_refresh(self) -> None:
        self._refresh = None
        self._client.workspace_diagnostic_refresh(None)

    def clear(self, uri: str) -> None:
        """Take away what was pushed for a URI."""
        self._publish(uri, [], None)

    # -- failures of runs

    def show_failures(self) -> None:
        """A run has other failures now: show those of every file."""
        self.show_changed(self._workspace.documents)
        self.show_unopened()

    def show_unopened(self) -> None:
        """Push the failures in files that are not open, in place of those pushed before."""
        self._unopened.clear()
        by_uri: dict[str, list[types.Diagnostic]] = {}
        for failure in self._workspace.unopened_failures():
            uri = from_fs_path(str(failure.path)) or ""
            place = self.location(failure.path, failure.range)
            by_uri.setdefault(uri, []).append(self._of_failure(failure, place.range))
        for uri in self._pushed_unopened - set(by_uri):
            self.clear(uri)
        for uri, items in by_uri.items():
            self._publish(uri, items, None)
        self._pushed_unopened = set(by_uri)

    def taken_over(self, uri: str) -> None:
        """A file was opened: from now on its diagnostics come with the document."""
        if uri in self._pushed_unopened:
            self._pushed_unopened.discard(uri)
            self.clear(uri)

    # -- pulled

    def report(
        self, document: Document, previous_result_id: str | None
    ) -> types.DocumentDiagnosticReport:
        """The answer to ``textDocument/diagnostic``."""
        items = self.diagnostics(document)[document.uri]
        last = document.report
        if last is None or last.items != items:
            self._reports += 1
            last = document.report = Report(f"ranksafe-{self._reports}", items)
        elif previous_result_id == last.result_id:
            return types.RelatedUnchangedDocumentDiagnosticReport(result_id=last.result_id)
        return types.RelatedFullDocumentDiagnosticReport(items=items, result_id=last.result_id)

    # -- conversion

    def location(self, path: Path, place: Range) -> types.Location:
        """A range of a file for the client; of a file that is not open by the text on disk."""
        document = self._workspace.documents.with_path(path)
        if document is not None:
            shown = document.locate(place)
            return types.Location(shown.uri, shown.range)
        uri = from_fs_path(str(path)) or path.as_uri()
        return types.Location(uri, client_range(self._on_disk(path), place, self._client.encoding))

    def _on_disk(self, path: Path) -> LineBuffer:
        try:
            status = path.stat()
            written = (status.st_mtime_ns, status.st_size)
            known = self._unopened.get(path)
            if known is None or known[0] != written:
                text = path.read_text(encoding="utf-8", errors="replace")
                known = self._unopened[path] = (written, LineBuffer(text))
        except OSError:
            return LineBuffer("")
        return known[1]

    def of_finding(self, document: Document, finding: Finding) -> types.Diagnostic:
        """A finding as the client shows it."""
        standing = self._workspace.testimonies.of(document.path, document.text)
        return self._of_finding(document, finding, standing)

    def _of_finding(
        self, document: Document, finding: Finding, standing: Sequence[Testimony]
    ) -> types.Diagnostic:
        page = self._page_of(finding.code)
        return types.Diagnostic(
            range=document.locate(finding.range).range,
            message="\n".join(self._said(finding, standing)),
            severity=_SEVERITY[finding.level],
            code=finding.code,
            code_description=types.CodeDescription(href=page) if page else None,
            source=SOURCE,
            tags=[types.DiagnosticTag.Unnecessary] if finding.code in _UNNECESSARY else None,
            related_information=[self._related(document, related) for related in finding.related]
            or None,
            data={
                "name": finding.name,
                "fixes": [
                    {"key": offer.key, "applicability": offer.applicability.value}
                    for offer in finding.fixes
                ],
            },
        )

    def _said(self, finding: Finding, standing: Sequence[Testimony]) -> Iterator[str]:
        """Its own words, then those of the last rehearsal."""
        yield finding.message.in_language(self._client.language)
        told = (testimony.of(finding) for testimony in standing)
        yield from {each.in_language(self._client.language) for each in told if each is not None}

    def _related(self, document: Document, related: Related) -> types.DiagnosticRelatedInformation:
        if related.path is None or related.path == document.path:
            place = document.locate(related.range)
            location = types.Location(place.uri, place.range)
        else:
            location = self.location(related.path, related.range)
        message = related.message.in_language(self._client.language)
        return types.DiagnosticRelatedInformation(location, message)

    def of_failure(self, document: Document, failure: RunFinding) -> types.Diagnostic:
        """A run's failure as the client shows it in a document."""
        return self._of_failure(failure, document.locate(failure.range).range)

    def _of_failure(self, failure: RunFinding, place: types.Range) -> types.Diagnostic:
        page = self._page_of(failure.code)
        return types.Diagnostic(
            range=place,
            message=failure.message.in_language(self._client.language),
            severity=_SEVERITY[failure.level],
            code=failure.code or failure.kind,
            code_description=types.CodeDescription(href=page) if page else None,
            source=FIT_SOURCE if failure.of_forecast else RUN_SOURCE,
            related_information=[
                types.DiagnosticRelatedInformation(
                    self.location(related.path, related.range),
                    related.message.in_language(self._client.language),
                )
                for related in failure.related
                if related.path is not None
            ]
            or None,
            data={"run": failure.run_id, "kind": failure.kind},
        )

    def _page_of(self, code: str | None) -> str | None:
        """Where the page of a rule is found on the web."""
        rule = self._projects.registry.by_code(code) if code else None
        return rule.url if rule is not None else None

    def _publish(self, uri: str, items: list[types.Diagnostic], version: int | None) -> None:
        self._client.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, diagnostics=items, version=version)
        )


def _worst(findings: Sequence[Finding]) -> Iterable[Finding]:
    if len(findings) <= _MOST_FINDINGS:
        return findings
    by_level = sorted(findings, key=lambda finding: -finding.level)
    return by_level[:_MOST_FINDINGS]
