"""Puts the language server together: which function answers which message. Read this first, then `session`.

One thread does everything but runs; analysis is fast enough for that, and nothing needs a lock.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from lsprotocol import types

from ranksafe.localization import language_of
from ranksafe.lsp import (
    code_actions,
    code_lenses,
    commands,
    pull,
    synchronization,
    workspace_events,
)
from ranksafe.lsp.connection import Connection
from ranksafe.lsp.hover import hover
from ranksafe.lsp.options import read_options
from ranksafe.lsp.session import Session
from ranksafe.lsp.user_state import UserState


def initialize(session: Session, params: types.InitializeParams) -> None:
    """Take over what the client says of itself."""
    client, workspace = session.client, session.workspace
    workspace.options = read_options(params.initialization_options)
    workspace.settings = workspace.options.settings
    workspace.trusted = workspace.options.trusted
    workspace.folders = client.folders or client.root
    client.shows_runs = workspace.options.shows_runs
    client.language = language_of(workspace.options.locale or params.locale)
    session.user_state = UserState(workspace.options.state_directory)
    session.publisher.client_pulls = client.can_pull
    client.is_initialized = True
    if client.can_pull:
        _answer(session, types.TEXT_DOCUMENT_DIAGNOSTIC, pull.diagnostic, pull.OPTIONS)


def shutdown(session: Session, _params: None) -> None:
    """End what was started for the user."""
    session.client.has_shut_down = True
    session.end()
    session.client.cancel_requests()


def progress_cancelled(session: Session, params: types.WorkDoneProgressCancelParams) -> None:
    """The user cancelled a piece of work."""
    cancel = session.client.cancellable.get(str(params.token))
    if cancel is not None:
        cancel()


HANDLERS: Final[Mapping[str, Callable[..., Any]]] = {
    types.INITIALIZE: initialize,
    types.INITIALIZED: workspace_events.initialized,
    types.SHUTDOWN: shutdown,
    types.TEXT_DOCUMENT_DID_OPEN: synchronization.file_opened,
    types.TEXT_DOCUMENT_DID_CHANGE: synchronization.file_changed,
    types.TEXT_DOCUMENT_DID_CLOSE: synchronization.file_closed,
    types.TEXT_DOCUMENT_DID_SAVE: synchronization.file_saved,
    types.NOTEBOOK_DOCUMENT_DID_OPEN: synchronization.notebook_opened,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: synchronization.notebook_changed,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: synchronization.notebook_closed,
    types.TEXT_DOCUMENT_CODE_ACTION: code_actions.offered,
    types.CODE_ACTION_RESOLVE: code_actions.resolved,
    types.TEXT_DOCUMENT_CODE_LENS: code_lenses.code_lenses,
    types.CODE_LENS_RESOLVE: code_lenses.resolve,
    types.TEXT_DOCUMENT_HOVER: hover,
    types.WINDOW_WORK_DONE_PROGRESS_CANCEL: progress_cancelled,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: workspace_events.settings_changed,
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: workspace_events.files_changed,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: workspace_events.folders_changed,
    workspace_events.TRUST: workspace_events.trust_changed,
}
"""By the method of the request or notification."""
OPTIONS: Final[Mapping[str, object]] = {
    types.TEXT_DOCUMENT_CODE_ACTION: code_actions.OPTIONS,
    types.TEXT_DOCUMENT_CODE_LENS: code_lenses.OPTIONS,
}


def create_server() -> Session:
    """A session whose connection answers every message."""
    session = Session(Connection())
    for method, handler in HANDLERS.items():
        _answer(session, method, handler, OPTIONS.get(method))
    for name in commands.HANDLERS:
        session.client.command(name)(_command(session, name))
    return session


def _answer(
    session: Session, method: str, handler: Callable[..., Any], options: object = None
) -> None:
    session.client.feature(method, options)(partial(handler, session))


def _command(session: Session, name: str) -> Callable[..., Awaitable[Any]]:
    # Not a partial: pygls would match the client's arguments with all parameters of its function.
    async def answer(*arguments: Any) -> Any:
        return await commands.execute(session, name, *arguments)

    # pygls hands the server itself to a first parameter whose type it fits, and takes no Any before Python 3.11.
    answer.__annotations__.clear()
    return answer
