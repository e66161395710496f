"""The client as the server speaks to it: what it said of itself, and every word to the user."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path

from ranksafe import __version__
from ranksafe.localization import Language, Translated
from ranksafe.lsp.documents import path_of
from ranksafe.lsp.lines import PositionEncoding
from ranksafe.lsp.notebooks import SYNC_OPTIONS

logger = logging.getLogger(__name__)

_LONGEST_WAIT_SECONDS: Final = 30.0
"""For the client to show a document."""
_OWN_DOCUMENTS: Final = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
)
"""Handled here alone: pygls would keep a second, slower copy of every document."""


class Connection(LanguageServer):
    """pygls' server, which is all that a client's messages pass through."""

    def __init__(self) -> None:
        super().__init__(
            "ranksafe",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            notebook_document_sync=SYNC_OPTIONS,
        )
        self.is_initialized = self.has_shut_down = False
        self.language: Language = "en"
        self.shows_runs = False
        """Whether the client tells the user itself how a run ended."""
        self.cancellable: dict[str, Callable[[], None]] = {}
        """What to do when the user cancels the progress with this token."""
        for method in _OWN_DOCUMENTS:
            self.protocol.fm.builtin_features.pop(method)

    # -- what the client says of itself

    @property
    def encoding(self) -> PositionEncoding:
        """What the client counts columns in."""
        encoding = self.workspace.position_encoding
        return PositionEncoding(getattr(encoding, "value", encoding) or "utf-16")

    @property
    def folders(self) -> list[Path]:
        """The open folders."""
        uris = [folder.uri for folder in self.workspace.folders.values()]
        return [path for path in map(path_of, uris) if path is not None]

    @property
    def root(self) -> list[Path]:
        """What was the one folder before there were several: for a client that names none of those."""
        path = path_of(self.workspace.root_uri)
        return [] if path is None else [path]

    @property
    def can_pull(self) -> bool:
        """Whether the client asks for diagnostics itself, and asks again when it is told to.

        Neovim 0.11 pulls but knows no ``workspace/diagnostic/refresh`` (0.11.4,
        ``runtime/lua/vim/lsp/handlers.lua``): a run's failures would not appear before the next key. Such a client is
        pushed.
        """
        text_document = self.client_capabilities.text_document
        workspace = self.client_capabilities.workspace
        refresh = workspace.diagnostics if workspace else None
        pulls = text_document is not None and text_document.diagnostic is not None
        return pulls and refresh is not None and bool(refresh.refresh_support)

    def cancel_requests(self) -> None:
        """End all requests that wait, but for the one that is being answered: pygls walks over a mapping which their
        ends change (2.1.1, ``lsp_shutdown``), and fails."""
        own = self.protocol.msg_id
        for number, future in tuple(self.protocol._request_futures.items()):
            if number != own:
                future.cancel()

    def refuse(self, request: object, reason: types.ErrorCodes) -> None:
        """Answer a request that cannot be understood; None: nobody knows which it was."""
        number = request if isinstance(request, (int, str)) else None
        error = {"code": reason.value, "message": reason.name}
        # Not as a message of lsprotocol, which leaves out an id of null.
        self.protocol._send_data({"jsonrpc": "2.0", "id": number, "error": error})

    # -- words

    def inform(self, message: Translated) -> None:
        """Tell the user."""
        self._tell(message, types.MessageType.Info)

    def warn(self, message: Translated) -> None:
        """Tell the user that something is missing or wrong."""
        self._tell(message, types.MessageType.Warning)

    def log(self, message: str) -> None:
        """Write into the client's log."""
        self.window_log_message(types.LogMessageParams(types.MessageType.Info, message))

    async def ask(
        self, question: Translated, answers: Sequence[str], kind: types.MessageType
    ) -> str | None:
        """The answer the user chose; None where the client cannot ask or the user turns away."""
        params = types.ShowMessageRequestParams(
            type=kind,
            message=question.in_language(self.language),
            actions=[types.MessageActionItem(title=answer) for answer in answers],
        )
        chosen = await self.window_show_message_request_async(params)
        return chosen.title if chosen is not None else None

    async def show(self, file: Path, otherwise: Translated, *, external: bool = False) -> None:
        """Have the client show a file; one that cannot is told ``otherwise``.

        ``external``: a page, which most editors leave to the browser.
        """
        if not await self._is_shown(file, external):
            self.inform(otherwise)

    def report_server_error(self, error: Exception, source: Any) -> None:  # noqa: ARG002
        """A defect of ours: for the log, not for a popup at every key."""
        logger.error("%s", error, exc_info=error)

    async def _is_shown(self, file: Path, external: bool) -> bool:
        window = self.client_capabilities.window
        if not (window and window.show_document and window.show_document.support):
            return False
        params = types.ShowDocumentParams(
            uri=from_fs_path(str(file)) or "", external=external or None, take_focus=True
        )
        try:
            shown = self.window_show_document_async(params)
            result = await asyncio.wait_for(shown, _LONGEST_WAIT_SECONDS)
        except Exception:
            return False
        return bool(result and result.success)

    def _tell(self, message: Translated, kind: types.MessageType) -> None:
        text = message.in_language(self.language)
        self.window_show_message(types.ShowMessageParams(kind, text))
