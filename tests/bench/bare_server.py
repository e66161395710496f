"""pygls with nothing on top: the least that a server built on it can cost."""

from __future__ import annotations

from lsprotocol import types
from pygls.lsp.server import LanguageServer

server = LanguageServer("bare", "1", text_document_sync_kind=types.TextDocumentSyncKind.Incremental)


@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
@server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
def publish(params: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams) -> None:
    document = params.text_document
    server.text_document_publish_diagnostics(
        types.PublishDiagnosticsParams(document.uri, [], document.version)
    )


server.start_io()
