"""The edit of ``.vscode/launch.json`` that lets VS Code start a script with accelerate."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types

from ranksafe.launch.launch_json import LaunchJsonError, with_accelerate_configuration
from ranksafe.lsp.file_edits import replacement


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
    return None if text == existing else replacement(file, existing, text)
