"""A VS Code launch configuration that starts a script with accelerate, as an edit of ``.vscode/launch.json``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from lsprotocol import types
from pygls.uris import from_fs_path

_CONFIGURATIONS: Final = re.compile(r'"configurations"\s*:\s*\[')
_INDENT: Final = "    "


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

    None when the file that is there has no list of configurations.
    """
    file = folder / ".vscode" / "launch.json"
    uri = from_fs_path(str(file)) or ""
    configuration = _configuration(script.relative_to(folder).as_posix())
    try:
        text = file.read_text(encoding="utf-8")
    except OSError:
        return _new_file(uri, configuration)
    found = _CONFIGURATIONS.search(text)
    if found is None:
        return None
    rest = text[found.end() :].lstrip()
    comma = "" if rest.startswith("]") else ","
    place = _position(text, found.end())
    new_text = "\n" + _indented(configuration, 2) + comma
    return _edit(uri, types.TextEdit(types.Range(place, place), new_text))


def _configuration(script: str) -> dict[str, Any]:
    return {
        "name": f"accelerate: {script}",
        "type": "debugpy",
        "request": "launch",
        "module": "accelerate.commands.launch",
        "args": ["${workspaceFolder}/" + script],
        "cwd": "${workspaceFolder}",
        "console": "integratedTerminal",
        "subProcess": True,
    }


def _new_file(uri: str, configuration: dict[str, Any]) -> types.WorkspaceEdit:
    whole = {"version": "0.2.0", "configurations": [configuration]}
    text = json.dumps(whole, indent=len(_INDENT), ensure_ascii=False) + "\n"
    top = types.Position(0, 0)
    edit = _edit(uri, types.TextEdit(types.Range(top, top), text))
    create = types.CreateFile(uri=uri, options=types.CreateFileOptions(ignore_if_exists=True))
    return types.WorkspaceEdit(document_changes=[create, *(edit.document_changes or ())])


def _edit(uri: str, edit: types.TextEdit) -> types.WorkspaceEdit:
    identifier = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=None)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identifier, [edit])])


def _indented(value: object, levels: int) -> str:
    text = json.dumps(value, indent=len(_INDENT), ensure_ascii=False)
    return "\n".join(_INDENT * levels + line for line in text.splitlines())


def _position(text: str, offset: int) -> types.Position:
    """Behind a bracket; what stands before it on its line is plain JSON and counts one unit a character."""
    before = text[:offset]
    line = before.count("\n")
    return types.Position(line, len(before) - (before.rfind("\n") + 1))
