"""``textDocument/didOpen``, ``didChange``, ``didClose`` and ``didSave``, incremental."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from ranksafe.lsp.documents import TextDocument

if TYPE_CHECKING:
    from ranksafe.lsp.server import RanksafeServer


def register(server: RanksafeServer) -> None:
    """Answer the four notifications."""

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        document = TextDocument(params.text_document, server.encoding)
        server.documents.add(document)
        server.checks.opened(document)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        document = server.documents.text_document(params.text_document.uri)
        if document is not None:
            document.apply(params.text_document.version, params.content_changes)
            server.checks.changed(document)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        document = server.documents.text_document(params.text_document.uri)
        if document is not None:
            server.checks.closed(document)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        server.checks.saved(params.text_document.uri)
