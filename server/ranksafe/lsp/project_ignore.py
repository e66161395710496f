"""The edit that leaves a rule out in a whole project: of its configuration file, which is made where there is none."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types

from ranksafe.checker.configuration_edit import NotEditable, with_rule_ignored
from ranksafe.lsp.file_edits import replacement

_PYPROJECT = "pyproject.toml"
_OWN = "ranksafe.toml"


def configuration_file(source: Path | None, folder: Path) -> Path:
    """The file that holds for a script (``source``), else the open folder's ``pyproject.toml``, else a
    ``ranksafe.toml`` there."""
    if source is not None and source.is_relative_to(folder):
        return source
    return folder / (_PYPROJECT if (folder / _PYPROJECT).is_file() else _OWN)


def ignore_edit(file: Path, code: str) -> types.WorkspaceEdit | None:
    """The edit; None where the file cannot be read or edited, or leaves the rule out already."""
    try:
        existing = file.read_text("utf-8") if file.exists() else None
        changed = with_rule_ignored(existing or "", code, in_pyproject=file.name == _PYPROJECT)
    except (OSError, UnicodeDecodeError, NotEditable):
        return None
    return None if changed == existing else replacement(file, existing, changed)
