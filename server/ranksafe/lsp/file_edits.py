"""Edits of files that the client may not have open, and that are made where they are not there."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types
from pygls.uris import from_fs_path


def can_create_files(capabilities: types.ClientCapabilities) -> bool:
    """Whether the client carries out edits that create a file."""
    workspace = capabilities.workspace
    edit = workspace.workspace_edit if workspace else None
    operations = edit.resource_operations if edit else None
    return bool(
        edit and edit.document_changes and types.ResourceOperationKind.Create in (operations or ())
    )


def replacement(file: Path, existing: str | None, text: str) -> types.WorkspaceEdit:
    """The edit that gives a file another text; ``existing``: what it holds, None where it has to be made."""
    uri = from_fs_path(str(file)) or ""
    end = types.Position((existing or "").count("\n") + 1, 0)
    edit = types.TextDocumentEdit(
        types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=None),
        [types.TextEdit(types.Range(types.Position(0, 0), end), text)],
    )
    if existing is not None:
        return types.WorkspaceEdit(document_changes=[edit])
    create = types.CreateFile(uri=uri, options=types.CreateFileOptions(ignore_if_exists=True))
    return types.WorkspaceEdit(document_changes=[create, edit])
