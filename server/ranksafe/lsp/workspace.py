"""The workspace around the documents: settings, trust, folders, files that change on disk."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types

from ranksafe.lsp.options import as_mapping, read_settings

if TYPE_CHECKING:
    from ranksafe.lsp.server import RanksafeServer

SECTION: Final = "ranksafe"
TRUST: Final = "ranksafe/trust"
CONFIGURATION_FILES: Final = ("pyproject.toml", "ranksafe.toml")
_WATCHED: Final = ("**/pyproject.toml", "**/ranksafe.toml", "**/*.py")
_PUT_OFF_SECONDS: Final = 0.1
"""Several files may change at once; they are answered together."""


class WorkspaceEvents:
    """What the client tells of the workspace."""

    def __init__(self, server: RanksafeServer) -> None:
        self._server = server
        self._put_off: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """After ``initialized``: ask for the settings, have files watched, load the rules while nobody waits."""
        await self._watch_files()
        await self._watch_settings()
        if await self._fetch_settings():
            self.everything_changed()
        self._server.ready()
        self._server.project_build.start()

    async def settings_changed(self, params: types.DidChangeConfigurationParams) -> None:
        """``workspace/didChangeConfiguration``: clients that can be asked send nothing useful along."""
        if self._can_be_asked():
            changed = await self._fetch_settings()
        else:
            changed = self._take_settings(as_mapping(params.settings).get(SECTION))
        if changed:
            self.everything_changed()

    def files_changed(self, params: types.DidChangeWatchedFilesParams) -> None:
        """``workspace/didChangeWatchedFiles``: configuration, or Python files that others import."""
        paths = [path for change in params.changes if (path := self._server.path_of(change.uri))]
        if any(path.name in CONFIGURATION_FILES for path in paths):
            self._everything_soon()
        self._server.publisher.changed_on_disk(paths)
        self._server.project_updates.changed_on_disk(paths)

    def everything_changed(self) -> None:
        """Read configurations anew and analyse everything again."""
        self._server.projects.forget()
        self._server.checks.check_again()
        self._server.project_build.start()

    def trust_changed(self, trusted: bool) -> None:
        """The user trusts the workspace, or no longer does."""
        if trusted == self._server.trusted:
            return
        self._server.trusted = trusted
        if not trusted:
            self._server.runs.cancel(None)
        self._server.projects.forget(rules=True)
        self._server.checks.check_again()

    def _everything_soon(self) -> None:
        if self._put_off is None:
            loop = asyncio.get_running_loop()
            self._put_off = loop.call_later(_PUT_OFF_SECONDS, self._do_put_off)

    def _do_put_off(self) -> None:
        self._put_off = None
        self.everything_changed()

    def _can_be_asked(self) -> bool:
        workspace = self._server.client_capabilities.workspace
        return bool(workspace and workspace.configuration)

    async def _fetch_settings(self) -> bool:
        if not self._can_be_asked():
            return False
        params = types.ConfigurationParams(items=[types.ConfigurationItem(section=SECTION)])
        try:
            answer = await self._server.workspace_configuration_async(params)
        except Exception:
            return False
        return self._take_settings(answer[0] if answer else None)

    def _take_settings(self, value: object) -> bool:
        if not as_mapping(value):
            return False
        settings = read_settings(value)
        if settings == self._server.settings:
            return False
        self._server.settings = settings
        return True

    async def _watch_files(self) -> None:
        workspace = self._server.client_capabilities.workspace
        capability = workspace.did_change_watched_files if workspace else None
        if not (capability and capability.dynamic_registration):
            return
        options = types.DidChangeWatchedFilesRegistrationOptions(
            watchers=[
                *(types.FileSystemWatcher(glob_pattern=pattern) for pattern in _WATCHED),
                # Of a folder that is deleted many clients tell nothing but its own name.
                types.FileSystemWatcher(glob_pattern="**/*", kind=types.WatchKind.Delete),
            ]
        )
        await self._register(types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)

    async def _watch_settings(self) -> None:
        workspace = self._server.client_capabilities.workspace
        capability = workspace.did_change_configuration if workspace else None
        if capability and capability.dynamic_registration:
            options = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
            await self._register(types.WORKSPACE_DID_CHANGE_CONFIGURATION, options)

    async def _register(self, method: str, options: object) -> None:
        registration = types.Registration(f"ranksafe:{method}", method, options)
        try:
            await self._server.client_register_capability_async(
                types.RegistrationParams([registration])
            )
        except Exception:
            self._server.log(f"the client refused to register {method}")


def register(server: RanksafeServer) -> None:
    """Answer the notifications about the workspace."""
    events = server.workspace_events

    @server.feature(types.INITIALIZED)
    async def initialized(_params: types.InitializedParams) -> None:
        await events.start()

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def configuration(params: types.DidChangeConfigurationParams) -> None:
        await events.settings_changed(params)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def files(params: types.DidChangeWatchedFilesParams) -> None:
        events.files_changed(params)

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders(_params: types.DidChangeWorkspaceFoldersParams) -> None:
        events.everything_changed()

    @server.feature(TRUST)
    def trust(params: Any) -> None:
        events.trust_changed(as_mapping(params).get("trusted") is True)
