"""What editors say of themselves in ``initialize``, and their habits, as far as a server can notice them.

Each was read in the editor's own source, but for JupyterLab, whose messages were recorded. Capabilities for what the
server does not offer (completion, renaming, formatting) are left out; what has a wrong name in the source has it here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ACTION_KINDS = ["quickfix", "refactor", "refactor.extract", "refactor.inline", "refactor.rewrite"]


@dataclass(frozen=True)
class Client:
    """One editor."""

    name: str
    capabilities: Mapping[str, Any]
    counts_in: str
    """The unit of its columns, once it has the server's answer."""
    pulls: bool = False
    """Asks for diagnostics."""
    offers_fixes: bool = True
    sends_whole_text: bool = False
    names_folders: bool = True
    """Sends ``workspaceFolders`` beside ``rootUri``."""
    first_version: int = 0
    options_when_none: Any = None
    """What it sends as ``initializationOptions`` where the user has set none."""
    settings_after_start: Mapping[str, Any] | None = None
    """What it sends with ``workspace/didChangeConfiguration`` right after ``initialized``."""
    also_says: Mapping[str, Any] = field(default_factory=dict)
    """Other members of its ``initialize``."""

    def initialize(self, project: Path, options: Any = None) -> dict[str, Any]:
        """The parameters of its ``initialize``."""
        return {
            "processId": None,
            "rootUri": project.as_uri(),
            "capabilities": self.capabilities,
            "initializationOptions": self.options_when_none if options is None else options,
            "workspaceFolders": [{"uri": project.as_uri(), "name": project.name}]
            if self.names_folders
            else None,
            **self.also_says,
        }


def _resolved(*properties: str) -> dict[str, Any]:
    return {"dataSupport": True, "resolveSupport": {"properties": list(properties)}}


def _literals(kinds: list[str]) -> dict[str, Any]:
    return {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": kinds}}}


HELIX = Client(
    # helix-lsp/src/client.rs and helix-lsp-types/src/lib.rs, July 2026.
    name="Helix",
    counts_in="utf-8",
    capabilities={
        "workspace": {
            "configuration": True,
            "didChangeConfiguration": {"dynamicRegistration": False},
            "workspaceFolders": True,
            "applyEdit": True,
            "executeCommand": {"dynamicRegistration": False},
            "workspaceEdit": {
                "documentChanges": True,
                "resourceOperations": ["create", "rename", "delete"],
                "failureHandling": "abort",
                "normalizesLineEndings": False,
            },
            "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
            # LSP calls it diagnostics: that it can be told to pull again stays unheard, and it is pushed.
            "diagnostic": {"refreshSupport": True},
        },
        "textDocument": {
            "hover": {"contentFormat": ["markdown"]},
            "codeAction": {
                **_literals(
                    ["", *ACTION_KINDS, "source", "source.organizeImports", "source.fixAll"]
                ),
                "isPreferredSupport": True,
                "disabledSupport": True,
                **_resolved("edit", "command"),
            },
            "diagnostic": {"dynamicRegistration": False, "relatedDocumentSupport": True},
            "publishDiagnostics": {"versionSupport": True, "tagSupport": {"valueSet": [1, 2]}},
        },
        "window": {
            "showMessage": {"messageActionItem": {"additionalPropertiesSupport": True}},
            "workDoneProgress": True,
            "showDocument": {"support": True},
        },
        "general": {"positionEncodings": ["utf-8", "utf-32", "utf-16"]},
    },
)

EGLOT = Client(
    # eglot.el 1.24.
    name="Eglot",
    counts_in="utf-32",
    options_when_none={},
    settings_after_start={},
    capabilities={
        "workspace": {
            "applyEdit": True,
            "executeCommand": {"dynamicRegistration": False},
            "workspaceEdit": {
                "documentChanges": True,
                "resourceOperations": ["create", "delete", "rename"],
                "failureHandling": "abort",
            },
            "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
            "semanticTokens": {"refreshSupport": True},
            "configuration": True,
            "workspaceFolders": True,
        },
        "textDocument": {
            "synchronization": {
                "dynamicRegistration": False,
                "willSave": True,
                "willSaveWaitUntil": True,
                "didSave": True,
            },
            "hover": {"dynamicRegistration": False, "contentFormat": ["markdown", "plaintext"]},
            "codeAction": {
                "dynamicRegistration": False,
                **_resolved("edit", "command"),
                **_literals([*ACTION_KINDS, "source", "source.organizeImports"]),
                "isPreferredSupport": True,
            },
            "diagnostic": {"dynamicRegistration": False},
            "publishDiagnostics": {
                "relatedInformation": False,
                "versionSupport": True,
                "codeDescriptionSupport": False,
                "tagSupport": {"valueSet": [1, 2]},
            },
            "$streamingDiagnostics": {"dynamicRegistration": False},
        },
        "window": {
            "showDocument": {"support": True},
            "showMessage": {"messageActionItem": {"additionalPropertiesSupport": True}},
            "workDoneProgress": True,
        },
        "general": {"positionEncodings": ["utf-32", "utf-8", "utf-16"]},
        "experimental": {},
    },
)

LSP_MODE = Client(
    # lsp-mode.el, July 2026.
    name="lsp-mode",
    counts_in="utf-32",
    also_says={"workDoneToken": "1"},
    capabilities={
        "general": {"positionEncodings": ["utf-32", "utf-8", "utf-16"]},
        "workspace": {
            "workspaceEdit": {
                "documentChanges": True,
                "resourceOperations": ["create", "rename", "delete"],
            },
            "applyEdit": True,
            "executeCommand": {"dynamicRegistration": False},
            "didChangeWatchedFiles": {"dynamicRegistration": True},
            "workspaceFolders": True,
            "configuration": True,
            "codeLens": {"refreshSupport": True},
            "diagnostics": {"refreshSupport": False},
        },
        "textDocument": {
            "synchronization": {"willSave": True, "didSave": True, "willSaveWaitUntil": True},
            "codeAction": {
                "dynamicRegistration": True,
                "isPreferredSupport": True,
                **_literals(["", *ACTION_KINDS, "source", "source.organizeImports"]),
                **_resolved("edit", "command"),
            },
            "hover": {"contentFormat": ["markdown", "plaintext"], "dynamicRegistration": True},
            "publishDiagnostics": {
                "relatedInformation": True,
                "tagSupport": {"valueSet": [1, 2]},
                "versionSupport": True,
            },
            "diagnostic": {"dynamicRegistration": False, "relatedDocumentSupport": False},
        },
        "window": {"workDoneProgress": True, "showDocument": {"support": True}},
    },
)

SUBLIME = Client(
    # plugin/core/sessions.py of the package LSP, August 2026.
    name="Sublime Text",
    counts_in="utf-16",
    pulls=True,
    options_when_none={},
    also_says={"locale": "en"},
    capabilities={
        "general": {
            "staleRequestSupport": {"cancel": True, "retryOnContentModified": []},
            "regularExpressions": {"engine": "ECMAScript"},
            "markdown": {"parser": "Python-Markdown", "version": "3.2.2"},
            "positionEncodings": ["utf-16"],
        },
        "textDocument": {
            "synchronization": {
                "dynamicRegistration": True,
                "willSave": True,
                "willSaveWaitUntil": True,
                "didSave": True,
            },
            "hover": {"dynamicRegistration": True, "contentFormat": ["markdown", "plaintext"]},
            "codeAction": {
                "dynamicRegistration": True,
                **_literals([*ACTION_KINDS, "source.fixAll", "source.organizeImports"]),
                "isPreferredSupport": True,
                **_resolved("edit"),
            },
            "codeLens": {
                "dynamicRegistration": True,
                "resolveSupport": {"properties": ["command"]},
            },
            "publishDiagnostics": {
                "relatedInformation": True,
                "tagSupport": {"valueSet": [1, 2]},
                "versionSupport": True,
                "codeDescriptionSupport": True,
                "dataSupport": True,
            },
            "diagnostic": {
                "dynamicRegistration": True,
                "relatedDocumentSupport": True,
                "relatedInformation": True,
                "markupMessageSupport": True,
                "dataSupport": True,
            },
        },
        "workspace": {
            "applyEdit": True,
            "workspaceEdit": {
                "documentChanges": True,
                "resourceOperations": ["create", "rename", "delete"],
                "failureHandling": "abort",
                "normalizesLineEndings": True,
            },
            "didChangeConfiguration": {"dynamicRegistration": True},
            "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
            "executeCommand": {"dynamicRegistration": True},
            "workspaceFolders": True,
            "configuration": True,
            "codeLens": {"refreshSupport": True},
            "diagnostics": {"refreshSupport": True},
        },
        "window": {
            "workDoneProgress": True,
            "showMessage": {"messageActionItem": {"additionalPropertiesSupport": True}},
            "showDocument": {"support": True},
        },
    },
)

_ZED: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {
        "configuration": True,
        "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
        "didChangeConfiguration": {"dynamicRegistration": True},
        "workspaceFolders": True,
        "diagnostic": {},
        "codeLens": {"refreshSupport": True},
        "workspaceEdit": {
            "resourceOperations": ["create", "rename", "delete"],
            "documentChanges": True,
        },
        "applyEdit": True,
        "executeCommand": {"dynamicRegistration": False},
    },
    "textDocument": {
        "codeAction": {
            **_literals(["refactor", "quickfix", "source"]),
            **_resolved("kind", "diagnostics", "isPreferred", "disabled", "edit", "command"),
        },
        "hover": {"contentFormat": ["markdown"]},
        "publishDiagnostics": {"relatedInformation": True},
        "synchronization": {"didSave": True},
        "codeLens": {"dynamicRegistration": False},
    },
    "experimental": {"serverStatusNotification": True, "localDocs": True},
    "window": {"workDoneProgress": True, "showMessage": {}},
}

ZED = Client(
    # crates/lsp/src/lsp.rs, 2025.
    name="Zed",
    counts_in="utf-16",
    settings_after_start={"pylsp": {"plugins": {"pycodestyle": {"enabled": False}}}},
    capabilities=_ZED,
)

ZED_THAT_PULLS = Client(
    # Later versions pull (zed.dev/docs/diagnostics); their source could not be read. The two capabilities are those
    # that LSP 3.17 wants of a client that pulls and can be told to pull again.
    name="Zed that pulls",
    counts_in="utf-16",
    pulls=True,
    settings_after_start=ZED.settings_after_start,
    capabilities=_ZED
    | {
        "workspace": _ZED["workspace"] | {"diagnostics": {"refreshSupport": True}},
        "textDocument": _ZED["textDocument"]
        | {"diagnostic": {"dynamicRegistration": True, "relatedDocumentSupport": True}},
    },
)

JUPYTERLAB = Client(
    # Recorded: JupyterLab 4.6.6 with jupyterlab-lsp 5.3.0. It has no code actions, and sends texts whole.
    name="JupyterLab",
    counts_in="utf-16",
    offers_fixes=False,
    sends_whole_text=True,
    names_folders=False,
    settings_after_start={},
    capabilities={
        "textDocument": {
            "synchronization": {
                "dynamicRegistration": True,
                "willSave": False,
                "didSave": True,
                "willSaveWaitUntil": False,
            },
            "publishDiagnostics": {"tagSupport": {"valueSet": [2, 1]}},
            "hover": {"dynamicRegistration": True, "contentFormat": ["markdown", "plaintext"]},
        },
        "workspace": {"didChangeConfiguration": {"dynamicRegistration": True}},
    },
)

CLIENTS = (HELIX, EGLOT, LSP_MODE, SUBLIME, ZED, ZED_THAT_PULLS, JUPYTERLAB)


_REGISTERED = {
    "workspace/didChangeWatchedFiles": ("workspace", "didChangeWatchedFiles"),
    "workspace/didChangeConfiguration": ("workspace", "didChangeConfiguration"),
}
_ASKED = {
    "workspace/configuration": ("workspace", "configuration"),
    "workspace/applyEdit": ("workspace", "applyEdit"),
    "workspace/codeLens/refresh": ("workspace", "codeLens", "refreshSupport"),
    "workspace/diagnostic/refresh": ("workspace", "diagnostics", "refreshSupport"),
    "window/workDoneProgress/create": ("window", "workDoneProgress"),
    "window/showDocument": ("window", "showDocument", "support"),
}


@dataclass
class Permissions:
    """What a server may ask of a client with these capabilities."""

    capabilities: Mapping[str, Any]
    broken: list[str] = field(default_factory=list)
    """What it asked all the same."""

    def note(self, method: str, params: Any) -> None:
        """A request came from the server."""
        if method == "client/registerCapability":
            for registration in params["registrations"]:
                place = _REGISTERED.get(registration["method"], ())
                if not place or not self._said(*place, "dynamicRegistration"):
                    self.broken.append(f"registered {registration['method']}")
        elif method not in _ASKED or not self._said(*_ASKED[method]):
            self.broken.append(method)

    def _said(self, *place: str) -> bool:
        value: Any = self.capabilities
        for name in place:
            value = value.get(name) if isinstance(value, Mapping) else None
        return bool(value)
