"""The edit of ``.vscode/launch.json`` that lets VS Code start a script with accelerate."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types
from pygls.uris import from_fs_path

from ranksafe.launch.launch_json import LaunchJsonError, with_accelerate_configuration


def can_create_files(capabilities: types.ClientCapabilities) -> bool:
    """Whether the client carries out edits that create a file."""
    workspace = capabilities.workspace
    edit = workspace.workspace_edit if workspace else None
    operations = edit.resource_operations if edit else None
    return bool(
        edit and edit.document_changes and types.ResourceOperationKind.Create in (operations or ())
    )


def launch_configuration_edit(folder: Path, script: Path) -> types.WorkspaceEdit | None:
    """The edit that adds the configuration to the folder's file, or makes the file.

    None when the file that is there cannot be read or extended, or has the configuration already.
    """
    file = folder / ".vscode" / "launch.json"
    try:
        existing = file.read_text("utf-8-sig") if file.exists() else None
        text = with_accelerate_configuration(existing, script.relative_to(folder).as_posix())
    except (OSError, UnicodeDecodeError, LaunchJsonError):
        return None
    if text == existing:
        return None
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
