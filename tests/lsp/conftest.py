"""An editor as far as the server sees one: a real server process, driven over stdio with pytest-lsp's client."""

from __future__ import annotations

import ast
import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from pytest_lsp import LanguageClient, client_capabilities, make_test_lsp_client

REPOSITORY = Path(__file__).parents[2]
LONGEST_WAIT_SECONDS = 180.0
"""Bounds a test that hangs: a rehearsal takes a minute on two cores that other tests use, too."""

DEVICE_MAP = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


def main():
    model = AutoModelForCausalLM.from_pretrained("gpt2", device_map="auto")
    trainer = Trainer(model=model, args=TrainingArguments("out"))
    trainer.train()


if __name__ == "__main__":
    main()
"""
"""RS201 on line 4 (0-based), reached from the Trainer on line 5."""

DEVICE_MAP_LINE = 4

QUIET: dict[str, Any] = {"select": ["RS001", "RS201", "RS301"]}
"""Settings under which no other rule has an opinion on the tests' scripts, now or later."""


def server_environment() -> dict[str, str]:
    """Without the virtual environment of whoever runs the tests: it is not the user's project."""
    environment = {
        key: value
        for key, value in os.environ.items()
        if key not in ("VIRTUAL_ENV", "CONDA_PREFIX")
    }
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(REPOSITORY / "server"), str(REPOSITORY / "rules")]
    )
    return environment


class Editor:
    """One session with a server."""

    def __init__(
        self, client: LanguageClient, folder: Path, answer: types.InitializeResult
    ) -> None:
        self.client = client
        self.folder = folder
        self.answer = answer
        self.published: list[types.PublishDiagnosticsParams] = []
        self.registrations: list[types.Registration] = []
        self.lens_refreshes: list[None] = []
        self._versions: dict[str, int] = {}

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def open(self, name: str, text: str, *, save: bool = True) -> str:
        if save:
            self.write(name, text)
        uri = self.uri(name)
        self._versions[uri] = 1
        item = types.TextDocumentItem(uri, "python", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return uri

    def change(self, uri: str, *changes: types.TextDocumentContentChangeEvent) -> int:
        self._versions[uri] += 1
        document = types.VersionedTextDocumentIdentifier(self._versions[uri], uri)
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(document, list(changes))
        )
        return self._versions[uri]

    def type(self, uri: str, line: int, column: int, text: str, delete: int = 0) -> int:
        """Replace ``delete`` units at a place by ``text``."""
        start, end = types.Position(line, column), types.Position(line, column + delete)
        change = types.TextDocumentContentChangePartial(types.Range(start, end), text)
        return self.change(uri, change)

    def replace_line(self, uri: str, line: int, text: str) -> int:
        start, end = types.Position(line, 0), types.Position(line + 1, 0)
        change = types.TextDocumentContentChangePartial(types.Range(start, end), text)
        return self.change(uri, change)

    def close(self, uri: str) -> None:
        self.client.text_document_did_close(
            types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri))
        )

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait until a condition holds and give what it gave."""
        deadline = time.monotonic() + LONGEST_WAIT_SECONDS
        while not (value := condition()):
            assert time.monotonic() < deadline, "it never came to that"
            await asyncio.sleep(0.01)
        return value

    async def version_shown(self, uri: str, version: int) -> Sequence[types.Diagnostic]:
        """What was pushed first of a version (or of a later one): after a pause more may have followed."""

        def shown() -> list[types.PublishDiagnosticsParams]:
            return [
                one
                for one in self.published
                if one.uri == uri and one.version is not None and one.version >= version
            ]

        return (await self.until(shown))[0].diagnostics

    def shown(self, uri: str) -> Sequence[types.Diagnostic]:
        """What the editor shows of the pushed diagnostics now."""
        return next((one.diagnostics for one in reversed(self.published) if one.uri == uri), ())

    async def shown_with(self, uri: str, *codes: str) -> list[types.Diagnostic]:
        """The pushed diagnostics once their codes are exactly these."""
        wanted = sorted(codes)
        await self.until(lambda: sorted(str(one.code) for one in self.shown(uri)) == wanted)
        return list(self.shown(uri))

    async def pull(self, uri: str, previous: str | None = None) -> Any:
        return await self.client.text_document_diagnostic_async(
            types.DocumentDiagnosticParams(
                types.TextDocumentIdentifier(uri), previous_result_id=previous
            )
        )

    async def actions(
        self, uri: str, line: int, only: list[str] | None = None
    ) -> Sequence[types.CodeAction]:
        place = types.Range(types.Position(line, 0), types.Position(line, 200))
        answer = await self.client.text_document_code_action_async(
            types.CodeActionParams(
                types.TextDocumentIdentifier(uri),
                place,
                types.CodeActionContext([], only=only),  # type: ignore[arg-type]
            )
        )
        return [_as_action(action) for action in answer or ()]

    async def lenses(self, uri: str) -> list[types.CodeLens]:
        """The document's lenses, resolved."""
        lenses = await self.unresolved_lenses(uri)
        return [await self.client.code_lens_resolve_async(lens) for lens in lenses]

    async def unresolved_lenses(self, uri: str) -> Sequence[types.CodeLens]:
        """The document's lenses as they come at first."""
        identifier = types.TextDocumentIdentifier(uri)
        answer = await self.client.text_document_code_lens_async(types.CodeLensParams(identifier))
        return answer or ()

    async def hover(self, uri: str, line: int, column: int) -> str | None:
        answer = await self.client.text_document_hover_async(
            types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line, column))
        )
        return answer.contents.value if answer else None  # type: ignore[union-attr]

    async def execute(self, command: str, *arguments: Any) -> Any:
        return await self.client.workspace_execute_command_async(
            types.ExecuteCommandParams(command, list(arguments))
        )

    @property
    def messages(self) -> list[str]:
        return [message.message for message in self.client.messages]


def _as_action(action: types.CodeAction | types.Command) -> types.CodeAction:
    """lsprotocol 2025.0.0 takes every object with a command for a Command; editors look at its type."""
    if isinstance(action, types.CodeAction):
        return action
    command = ast.literal_eval(action.command)
    return types.CodeAction(action.title, command=types.Command(**command))


StartEditor = Callable[..., Awaitable[Editor]]


@pytest_asyncio.fixture
async def start_editor(tmp_path: Path) -> AsyncIterator[StartEditor]:
    """Starts servers and ends them after the test."""
    editors: list[Editor] = []

    async def start(
        *,
        capabilities: types.ClientCapabilities | None = None,
        options: dict[str, Any] | None = None,
        locale: str | None = None,
        configuration: dict[str, Any] | None = None,
        folders: Sequence[str] = ("project",),
        command: Sequence[str] = (sys.executable, "-m", "ranksafe.lsp"),
        environment: dict[str, str] | None = None,
        settings_after: float = 0,
    ) -> Editor:
        paths = [tmp_path / name for name in folders]
        for path in paths:
            path.mkdir(exist_ok=True)
        client = make_test_lsp_client()
        if configuration is not None:
            client.set_configuration({"ranksafe": QUIET | configuration})
        options = options or {}
        published: list[types.PublishDiagnosticsParams] = []

        registrations: list[types.Registration] = []
        client.protocol.fm.features.pop(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)

        @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(params: types.PublishDiagnosticsParams) -> None:
            published.append(params)

        @client.feature(types.CLIENT_REGISTER_CAPABILITY)
        def register(params: types.RegistrationParams) -> None:
            registrations.extend(params.registrations)

        lens_refreshes: list[None] = []

        @client.feature(types.WORKSPACE_CODE_LENS_REFRESH)
        def refresh_lenses(*_: object) -> None:
            lens_refreshes.append(None)

        if settings_after:
            client.protocol.fm.features.pop(types.WORKSPACE_CONFIGURATION)

            @client.feature(types.WORKSPACE_CONFIGURATION)
            async def settings(_params: types.ConfigurationParams) -> list[Any]:
                await asyncio.sleep(settings_after)
                return [QUIET | (configuration or {})]

        await client.start_io(*command, env=server_environment() | (environment or {}))
        answer = await client.initialize_session(
            types.InitializeParams(
                capabilities=capabilities or push_capabilities(),
                locale=locale,
                initialization_options={
                    "trusted": True,
                    "stateDirectory": str(tmp_path / "state"),
                    **options,
                    "settings": QUIET | options.get("settings", {}),
                },
                workspace_folders=[
                    types.WorkspaceFolder(path.as_uri(), path.name) for path in paths
                ],
            )
        )
        editor = Editor(client, paths[0] if paths else tmp_path, answer)
        editor.published = published
        editor.registrations = registrations
        editor.lens_refreshes = lens_refreshes
        editors.append(editor)
        return editor

    yield start
    for editor in editors:
        await editor.client.shutdown_session()
        await editor.client.stop()


def push_capabilities() -> types.ClientCapabilities:
    """A client that does everything but pull diagnostics."""
    capabilities = client_capabilities("visual-studio-code")
    assert capabilities.text_document is not None
    capabilities.text_document.diagnostic = None
    return capabilities


def pull_capabilities() -> types.ClientCapabilities:
    """A client that pulls diagnostics."""
    capabilities = push_capabilities()
    assert capabilities.text_document is not None
    capabilities.text_document.diagnostic = types.DiagnosticClientCapabilities()
    assert capabilities.workspace is not None
    capabilities.workspace.diagnostics = types.DiagnosticWorkspaceClientCapabilities(
        refresh_support=True
    )
    return capabilities


@pytest.fixture
def applied() -> Callable[[str, Sequence[types.TextEdit]], str]:
    """Applies text edits as an editor does (UTF-16 columns; the tests use ASCII lines)."""

    def apply(text: str, edits: Sequence[types.TextEdit]) -> str:
        lines = text.splitlines(keepends=True)
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line))

        def offset(position: types.Position) -> int:
            return min(starts[min(position.line, len(lines))] + position.character, len(text))

        for edit in sorted(edits, key=lambda one: offset(one.range.start), reverse=True):
            text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
        return text

    return apply
