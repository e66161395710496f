"""The workspace around the documents: settings, trust, folders, files that change on disk."""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path
from typing import Any, Final

from lsprotocol import types

from ranksafe.checker.configuration import FILE_NAMES
from ranksafe.launch.pins import PIN_FILES, PIN_PATTERNS
from ranksafe.lsp.connection import Connection
from ranksafe.lsp.documents import path_of
from ranksafe.lsp.options import as_mapping, read_settings
from ranksafe.lsp.session import Session

SECTION: Final = "ranksafe"
TRUST: Final = "ranksafe/trust"
_OF_THE_LAUNCH: Final = {*FILE_NAMES, *PIN_FILES}
_WATCHED: Final = (
    *(f"**/{name}" for name in sorted(_OF_THE_LAUNCH)),
    *(f"**/{pattern}" for pattern in PIN_PATTERNS),
    "**/*.py",
)
_NEVER: Final = 1_000_000_000
_PUT_OFF_SECONDS: Final = 0.1
"""Several files may change at once; they are answered together."""


async def initialized(session: Session, _params: types.InitializedParams) -> None:
    """``initialized``: ask for the settings, have files watched, load the rules while nobody waits."""
    try:
        await _watch_files(session.client)
        await _watch_settings(session.client)
        if await _fetch_settings(session):
            everything_changed(session)
    finally:
        session.settings_known.set()
    _ = session.projects.registry
    # Everything that stays was made: leave it out of every later garbage collection.
    gc.collect()
    gc.freeze()
    if sys.version_info < (3, 14):
        # Only what is young is looked at in between, and soon; all of it while nobody types (`ranksafe.lsp.checks`).
        gc.set_threshold(gc.get_threshold()[0], 1, _NEVER)
    session.project_build.start()


async def settings_changed(session: Session, params: types.DidChangeConfigurationParams) -> None:
    """``workspace/didChangeConfiguration``: clients that can be asked send nothing useful along."""
    if _can_be_asked(session.client):
        changed = await _fetch_settings(session)
    else:
        changed = _take_settings(session, as_mapping(params.settings).get(SECTION))
    if changed:
        everything_changed(session)


def files_changed(session: Session, params: types.DidChangeWatchedFilesParams) -> None:
    """``workspace/didChangeWatchedFiles``: configuration, versions that are asked for, or Python files that others
    import."""
    paths = [path for change in params.changes if (path := path_of(change.uri))]
    if session.put_off is None and any(map(_is_of_the_launch, paths)):
        loop = asyncio.get_running_loop()
        session.put_off = loop.call_later(_PUT_OFF_SECONDS, _do_put_off, session)
    session.project_updates.changed_on_disk(paths)


def _is_of_the_launch(path: Path) -> bool:
    return path.name in _OF_THE_LAUNCH or any(map(path.match, PIN_PATTERNS))


def folders_changed(session: Session, _params: types.DidChangeWorkspaceFoldersParams) -> None:
    """``workspace/didChangeWorkspaceFolders``."""
    session.workspace.folders = session.client.folders
    everything_changed(session)


def trust_changed(session: Session, params: Any) -> None:
    """``ranksafe/trust``: the user trusts the workspace, or no longer does."""
    set_trusted(session, as_mapping(params).get("trusted") is True)


def set_trusted(session: Session, trusted: bool) -> None:
    """Take over whether the user trusts the workspace."""
    if trusted == session.workspace.trusted:
        return
    session.workspace.trusted = trusted
    if not trusted:
        session.runs.cancel(None)
    session.projects.forget(rules=True)
    session.checks.check_again()


def everything_changed(session: Session) -> None:
    """Read configurations anew and analyse everything again."""
    session.projects.forget()
    session.checks.check_again()
    session.project_build.start()


def _do_put_off(session: Session) -> None:
    session.put_off = None
    everything_changed(session)


def _can_be_asked(client: Connection) -> bool:
    workspace = client.client_capabilities.workspace
    return bool(workspace and workspace.configuration)


async def _fetch_settings(session: Session) -> bool:
    if not _can_be_asked(session.client):
        return False
    params = types.ConfigurationParams(items=[types.ConfigurationItem(section=SECTION)])
    try:
        answer = await session.client.workspace_configuration_async(params)
    except Exception:
        return False
    return _take_settings(session, answer[0] if answer else None)


def _take_settings(session: Session, value: object) -> bool:
    if not as_mapping(value):
        return False
    settings = read_settings(value)
    if settings == session.workspace.settings:
        return False
    session.workspace.settings = settings
    return True


async def _watch_files(client: Connection) -> None:
    workspace = client.client_capabilities.workspace
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
    await _register(client, types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)


async def _watch_settings(client: Connection) -> None:
    workspace = client.client_capabilities.workspace
    capability = workspace.did_change_configuration if workspace else None
    if capability and capability.dynamic_registration:
        options = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
        await _register(client, types.WORKSPACE_DID_CHANGE_CONFIGURATION, options)


async def _register(client: Connection, method: str, options: object) -> None:
    registration = types.Registration(f"ranksafe:{method}", method, options)
    try:
        await client.client_register_capability_async(types.RegistrationParams([registration]))
    except Exception:
        client.log(f"the client refused to register {method}")
