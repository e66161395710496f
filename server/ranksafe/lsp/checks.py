"""When documents are analysed: at once while that is cheap, later while keys come faster, again when typing pauses."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import dataclass, field
from typing import Final

from ranksafe.lsp.analysis import Analyses
from ranksafe.lsp.documents import Document, OpenDocuments
from ranksafe.lsp.lens_refresh import LensRefresh
from ranksafe.lsp.publisher import Publisher

LONGEST_DELAY_SECONDS: Final = 0.05
"""An analysis waits as long as the last one took, so that keys typed meanwhile share one, but not longer than this."""
CHEAP_SECONDS: Final = 0.02
"""Below this it does not wait: all input that has arrived is taken before an analysis starts anyway."""
IDLE_SECONDS: Final = 0.3
"""Without a key for this long the typing has paused."""
REST_SECONDS: Final = 2.0
"""After this a full garbage collection, tens of milliseconds with large files open, is unlikely to meet a key."""
COLLECTION_SHARE: Final = 0.02
"""Of the time. With files open that are as large as they may be, a collection takes a second."""


@dataclass(slots=True)
class Checks:
    """The analyses that are due."""

    _documents: OpenDocuments
    _analyses: Analyses
    _publisher: Publisher
    _lens_refresh: LensRefresh
    _due: dict[str, asyncio.Handle] = field(default_factory=dict)
    _idle: asyncio.TimerHandle | None = None
    _rest: asyncio.TimerHandle | None = None
    _edited: set[str] = field(default_factory=set)
    _next_collection: float = 0.0
    """Not before that time of the loop."""

    @property
    def is_typing(self) -> bool:
        """Whether a key came a moment ago."""
        return self._idle is not None

    def opened(self, document: Document) -> None:
        """A document was opened."""
        self._analyses.bring_up(document, self._show)

    def changed(self, document: Document) -> None:
        """A document was edited."""
        self._analyses.edited(document)
        self._edited.add(document.uri)
        self._wait_for_idleness()
        if document.uri in self._due:
            return
        delay = document.last_cost_seconds
        loop = asyncio.get_running_loop()
        if delay < CHEAP_SECONDS:
            self._due[document.uri] = loop.call_soon(self._check, document)
        else:
            delay = min(delay, LONGEST_DELAY_SECONDS)
            self._due[document.uri] = loop.call_later(delay, self._check, document)

    def closed(self, document: Document) -> None:
        """A document was closed: nothing is due for it any more."""
        due = self._due.pop(document.uri, None)
        if due is not None:
            due.cancel()
        self._edited.discard(document.uri)
        self._analyses.closed(document)

    def check_again(self) -> None:
        """Configuration, versions, trust or other files changed: analyse everything anew."""
        for document in self._documents:
            document.history.out_of_date()
            self._analyses.analyse_again(document, self.show_if_changed)
        self._lens_refresh.changed()

    def show_if_changed(self, document: Document, has_changed: bool) -> None:
        """Show what the client does not know of."""
        if has_changed:
            self._publisher.show_changed([document])
            self._lens_refresh.changed()

    def _check(self, document: Document) -> None:
        self._due.pop(document.uri, None)
        if not self._publisher.is_pulled(document):
            self._analyses.bring_up(document, self._show)

    def _show(self, document: Document, _has_changed: bool) -> None:
        self._publisher.show(document)

    # -- when typing pauses

    def _wait_for_idleness(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None
        self._idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._typing_paused)

    def _typing_paused(self) -> None:
        self._idle = None
        edited, self._edited = self._edited, set()
        for document in self._documents:
            if document.uri in edited:
                document.is_at_rest = True
                self._analyses.bring_up(document, self.show_if_changed)
        if edited:
            self._lens_refresh.changed()
        gc.collect(1)
        loop = asyncio.get_running_loop()
        self._rest = loop.call_at(
            max(loop.time() + REST_SECONDS, self._next_collection), self._collect_garbage
        )

    def _collect_garbage(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        gc.collect()
        self._next_collection = loop.time() + (loop.time() - began) / COLLECTION_SHARE
