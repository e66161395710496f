"""The editors on this machine, and which of them have ranksafe. Reads folders and settings, starts nothing."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ranksafe.localization import Translated
from ranksafe.runs.plain_files import parse_json

EXTENSION: Final = "ranksafe.ranksafe"
_MOST_BYTES: Final = 1 << 20
"""Of a settings file; a larger one is none."""


@dataclass(frozen=True, slots=True)
class _Workbench:
    """An editor of the family of VS Code: extensions in a folder, listed in its ``extensions.json``."""

    name: str
    command: str | None
    folder: str
    """Relative to the home folder."""


@dataclass(frozen=True, slots=True)
class _LspEditor:
    """An editor whose configuration names the servers that it starts."""

    name: str
    commands: tuple[str, ...]
    files: tuple[str, ...]
    """Patterns, relative to the folders of `_configuration_folders` or to the home folder."""


_WORKBENCHES: Final = (
    _Workbench("VS Code", "code", ".vscode/extensions"),
    _Workbench("VS Code Insiders", "code-insiders", ".vscode-insiders/extensions"),
    _Workbench("Cursor", "cursor", ".cursor/extensions"),
    _Workbench("VSCodium", "codium", ".vscode-oss/extensions"),
    _Workbench("VS Code Server", None, ".vscode-server/extensions"),
    _Workbench("Cursor Server", None, ".cursor-server/extensions"),
    _Workbench("code-server", "code-server", ".local/share/code-server/extensions"),
)
_LSP_EDITORS: Final = (
    _LspEditor(
        "Neovim", ("nvim",), ("nvim/lsp/ranksafe.lua", "nvim/init.lua", "nvim/lua/**/*.lua")
    ),
    _LspEditor("Helix", ("hx", "helix"), ("helix/languages.toml",)),
    _LspEditor("Emacs", ("emacs",), (".emacs", ".emacs.el", ".emacs.d/init.el", "emacs/init.el")),
    _LspEditor(
        "Sublime Text",
        ("subl",),
        tuple(
            f"{folder}/Packages/User/{file}.sublime-settings"
            for folder in ("sublime-text", "Sublime Text")
            for file in ("LanguageServers", "LSP")
        ),
    ),
    _LspEditor("Zed", ("zed", "zeditor"), ("zed/settings.json", "Zed/settings.json")),
    _LspEditor("JupyterLab", ("jupyter-lab",), (".jupyter/jupyter_server_config.d/*.json",)),
)

_HAS_EXTENSION = Translated(
    "{editor}: ranksafe {version} is installed", "{editor}：已安装 ranksafe {version}"
)
_NO_EXTENSION = Translated(
    "{editor}: the extension is not installed (make vscode)", "{editor}：未安装扩展（make vscode）"
)
_STARTS = Translated("{editor}: starts ranksafe ({file})", "{editor}：会启动 ranksafe（{file}）")
_STARTS_NOT = Translated(
    "{editor}: ranksafe is not in its configuration; what to write where: docs/guide/editors.md",
    "{editor}：其配置中没有 ranksafe；写法见 docs/guide/editors.zh-cn.md",
)


def editors(home: Path, environment: Mapping[str, str]) -> Iterator[Translated]:
    """A sentence about each editor that is there: with or without ranksafe."""
    for workbench in _WORKBENCHES:
        folder = home / workbench.folder
        if folder.is_dir() or _is_on_path(workbench.command, environment):
            version = _installed(folder)
            told = _NO_EXTENSION if version is None else _HAS_EXTENSION
            yield told.filled(editor=workbench.name, version=version)
    folders = (home, *_configuration_folders(home, environment))
    for editor in _LSP_EDITORS:
        if any(_is_on_path(command, environment) for command in editor.commands):
            file = _naming_file(folders, editor.files)
            told = _STARTS_NOT if file is None else _STARTS
            yield told.filled(editor=editor.name, file=file)


def _is_on_path(command: str | None, environment: Mapping[str, str]) -> bool:
    path = environment.get("PATH", os.defpath)
    return command is not None and shutil.which(command, path=path) is not None


def _installed(extensions: Path) -> str | None:
    """The version of the extension. Its folder may outlive it; the list of the editor does not."""
    try:
        listed = parse_json((extensions / "extensions.json").read_bytes())
        return next(
            str(one["version"]) for one in listed if one["identifier"]["id"].lower() == EXTENSION
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, StopIteration):
        return None


def _configuration_folders(home: Path, environment: Mapping[str, str]) -> tuple[Path, ...]:
    chosen = environment.get("XDG_CONFIG_HOME")
    folders = [Path(chosen) if chosen else home / ".config"]
    if sys.platform == "darwin":
        folders.append(home / "Library" / "Application Support")
    if sys.platform == "win32":
        folders += [
            Path(environment[name]) for name in ("APPDATA", "LOCALAPPDATA") if name in environment
        ]
    return tuple(folders)


def _naming_file(folders: tuple[Path, ...], patterns: tuple[str, ...]) -> Path | None:
    """The first configuration that says our name."""
    for folder in folders:
        for pattern in patterns:
            for file in sorted(folder.glob(pattern)):
                if _says_our_name(file):
                    return file
    return None


def _says_our_name(file: Path) -> bool:
    try:
        return file.stat().st_size <= _MOST_BYTES and b"ranksafe" in file.read_bytes()
    except OSError:
        return False
