"""Work-done progress that the user can cancel; nothing at all for a client that cannot show it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Final

from lsprotocol import types

from ranksafe.localization import Translated
from ranksafe.lsp.connection import Connection

_LONGEST_WAIT_SECONDS: Final = 5.0
"""For the client to make a token; a run does not wait longer for its progress bar."""
_numbers = itertools.count(1)


class Progress:
    """One piece of work as the client shows it."""

    def __init__(self, client: Connection, title: Translated) -> None:
        self._client = client
        self._title = title.in_language(client.language)
        self.token = f"ranksafe-{next(_numbers)}"
        self._cancel: Callable[[], None] | None = None
        self._cancelled_early = False
        window = client.client_capabilities.window
        self._shown = bool(window and window.work_done_progress)

    async def begin(self, percentage: int | None = None) -> None:
        """Have the client make the token, then show the title; a bar only if it begins with a percentage."""
        self._client.cancellable[self.token] = self.cancel
        if not self._shown:
            return
        try:
            created = self._client.work_done_progress.create_async(self.token)
            await asyncio.wait_for(created, _LONGEST_WAIT_SECONDS)
        except Exception:
            self._shown = False
            return
        self._client.work_done_progress.begin(
            self.token,
            types.WorkDoneProgressBegin(title=self._title, cancellable=True, percentage=percentage),
        )

    def on_cancel(self, cancel: Callable[[], None]) -> None:
        """What to do when the user cancels; done at once if they have."""
        self._cancel = cancel
        if self._cancelled_early:
            self.cancel()

    def cancel(self) -> None:
        """The user cancelled."""
        if self._cancel is None:
            self._cancelled_early = True
        else:
            self._cancel()

    def report(self, message: str, percentage: int | None = None) -> None:
        """Say how far the work is."""
        if self._shown and self.token in self._client.cancellable:
            self._client.work_done_progress.report(
                self.token,
                types.WorkDoneProgressReport(
                    message=message, cancellable=True, percentage=percentage
                ),
            )

    def end(self, message: str) -> None:
        """The work is over."""
        known = self._client.cancellable.pop(self.token, None)
        if self._shown and known is not None:
            self._client.work_done_progress.end(
                self.token, types.WorkDoneProgressEnd(message=message or None)
            )
