"""When the client is told to ask for code lenses again: at once, and later for a client that did not hear it."""

from __future__ import annotations

import asyncio
from typing import Final

from ranksafe.lsp.connection import Connection

_TOGETHER_SECONDS: Final = 0.1
"""Changes come in groups: a document, its settings and the trust in it at the start, many files of one checkout."""
_AGAIN_SECONDS: Final = (1.5, 6.0)
"""VS Code puts its request for lenses off, and drops it when the editor loses the focus meanwhile. It asks no more by
itself until the focus comes back, so a user who goes from the file to its problems at once would see no lens."""


class LensRefresh:
    """Sends ``workspace/codeLens/refresh``; calls that come together share one."""

    def __init__(self, client: Connection) -> None:
        self._client = client
        self._now: asyncio.TimerHandle | None = None
        self._again: list[asyncio.TimerHandle] = []
        self._ended = False

    def changed(self) -> None:
        """The lenses are others than those that the client may have."""
        if self._now is None and self._can_refresh():
            loop = asyncio.get_running_loop()
            self._now = loop.call_later(_TOGETHER_SECONDS, self._send_now)
        self.may_be_missed()

    def may_be_missed(self) -> None:
        """The client is about to ask for lenses by itself, and that may be lost."""
        if not self._can_refresh():
            return
        self._cancel_again()
        loop = asyncio.get_running_loop()
        self._again = [loop.call_later(seconds, self._send) for seconds in _AGAIN_SECONDS]

    def end(self) -> None:
        """The client goes away: tell it nothing more."""
        self._ended = True
        self._cancel_again()

    def _can_refresh(self) -> bool:
        workspace = self._client.client_capabilities.workspace
        capability = workspace.code_lens if workspace else None
        return bool(capability and capability.refresh_support) and not self._ended

    def _cancel_again(self) -> None:
        for handle in self._again:
            handle.cancel()
        self._again = []

    def _send_now(self) -> None:
        self._now = None
        self._send()

    def _send(self) -> None:
        if not self._ended:
            self._client.workspace_code_lens_refresh(None)
