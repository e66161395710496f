"""``textDocument/diagnostic``, registered only for clients that pull: one is never shown the same in both ways."""

from __future__ import annotations

from typing import Final

from lsprotocol import types

from ranksafe.lsp.documents import TextDocument
from ranksafe.lsp.session import Session

OPTIONS: Final = types.DiagnosticOptions(
    identifier="ranksafe", inter_file_dependencies=True, workspace_diagnostics=False
)


async def diagnostic(
    session: Session, params: types.DocumentDiagnosticParams
) -> types.DocumentDiagnosticReport:
    """The diagnostics of a file, or that they are the same as before."""
    document = await session.analyses.current(params.text_document.uri)
    if not isinstance(document, TextDocument):
        # Cells are pushed; a file that is not open has nothing to show.
        return types.RelatedFullDocumentDiagnosticReport(items=[])
    return session.publisher.report(document, params.previous_result_id)
