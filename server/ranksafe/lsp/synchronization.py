"""Documents come, change and go: ``textDocument/did*`` and ``notebookDocument/did*``, incremental."""

from __future__ import annotations

from lsprotocol import types

from ranksafe.lsp import fit_commands, rehearse_on_save
from ranksafe.lsp.documents import Document, TextDocument
from ranksafe.lsp.notebooks import Notebook
from ranksafe.lsp.session import Session


def file_opened(session: Session, params: types.DidOpenTextDocumentParams) -> None:
    """``textDocument/didOpen``."""
    _opened(session, TextDocument(params.text_document, session.client.encoding))


def file_changed(session: Session, params: types.DidChangeTextDocumentParams) -> None:
    """``textDocument/didChange``."""
    document = session.documents.text_document(params.text_document.uri)
    if document is not None:
        document.apply(params.text_document.version, params.content_changes)
        _changed(session, document)


def file_closed(session: Session, params: types.DidCloseTextDocumentParams) -> None:
    """``textDocument/didClose``."""
    document = session.documents.text_document(params.text_document.uri)
    if document is not None:
        _closed(session, document)


def file_saved(session: Session, params: types.DidSaveTextDocumentParams) -> None:
    """``textDocument/didSave``: others that import the file may mean something else now, and run otherwise."""
    document = session.documents.get(params.text_document.uri)
    if document is not None:
        session.project_updates.saved(document)
        rehearse_on_save.saved(session, document.path)
        fit_commands.saved(session, document.path)


def notebook_opened(session: Session, params: types.DidOpenNotebookDocumentParams) -> None:
    """``notebookDocument/didOpen``."""
    _opened(session, Notebook(params, session.client.encoding))


def notebook_changed(session: Session, params: types.DidChangeNotebookDocumentParams) -> None:
    """``notebookDocument/didChange``."""
    notebook = _notebook(session, params.notebook_document.uri)
    if notebook is not None:
        before = notebook.uris
        notebook.change(params.change)
        session.documents.add(notebook)
        for uri in set(before).difference(notebook.uris):
            session.publisher.clear(uri)
        _changed(session, notebook)


def notebook_closed(session: Session, params: types.DidCloseNotebookDocumentParams) -> None:
    """``notebookDocument/didClose``."""
    notebook = _notebook(session, params.notebook_document.uri)
    if notebook is not None:
        _closed(session, notebook)


def _notebook(session: Session, uri: str) -> Notebook | None:
    document = session.documents.get(uri)
    return document if isinstance(document, Notebook) and document.uri == uri else None


def _opened(session: Session, document: Document) -> None:
    """Have it analysed and shown soon."""
    before = session.documents.get(document.uri)
    if before is not None and before.uri == document.uri:
        # Opened twice, which no client should: the newer text counts.
        _closed(session, before)
    session.documents.add(document)
    document.run_findings = session.workspace.run_findings.of(document.path)
    session.project_updates.opened(document)
    for uri in document.uris:
        session.publisher.taken_over(uri)
    session.checks.opened(document)
    session.lens_refresh.may_be_missed()
    session.project_build.follow(document)


def _changed(session: Session, document: Document) -> None:
    """Have it analysed soon. A pulling client asks by itself."""
    session.project_updates.edited(document)
    session.checks.changed(document)


def _closed(session: Session, document: Document) -> None:
    """Nothing is shown for it any more, except a run's failures."""
    session.checks.closed(document)
    session.documents.remove(document.uri)
    session.project_updates.closed(document)
    for uri in document.uris:
        session.publisher.clear(uri)
    session.publisher.show_unopened()
