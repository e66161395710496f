"""``textDocument/diagnostic``, registered only for clients that pull (DESIGN, invariant 7: never both)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from ranksafe.lsp.documents import TextDocument

if TYPE_CHECKING:
    from ranksafe.lsp.server import RanksafeServer


def client_can_pull(capabilities: types.ClientCapabilities) -> bool:
    """Whether the client asks for diagnostics itself, and asks again when it is told to.

    Neovim 0.11 pulls but knows no ``workspace/diagnostic/refresh`` (0.11.4, ``runtime/lua/vim/lsp/handlers.lua``): a
    run's failures would not appear before the next key. Such a client is pushed.
    """
    workspace = capabilities.workspace
    refresh = (
        workspace.diagnostics.refresh_support if workspace and workspace.diagnostics else False
    )
    return bool(capabilities.text_document and capabilities.text_document.diagnostic and refresh)


def register(server: RanksafeServer) -> None:
    """Answer ``textDocument/diagnostic``."""
    options = types.DiagnosticOptions(
        identifier="ranksafe", inter_file_dependencies=True, workspace_diagnostics=False
    )

    @server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, options)
    def diagnostic(params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        document = server.documents.get(params.text_document.uri)
        if not isinstance(document, TextDocument):
            # Cells are pushed; a file that is not open has nothing to show.
            return types.RelatedFullDocumentDiagnosticReport(items=[])
        server.checks.ensure(document)
        return server.publisher.report(document, params.previous_result_id)
