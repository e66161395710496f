"""One line on a terminal that tells how far a long piece of work is, and goes away when it is done."""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType

from ranksafe.cli.terminal import cut, style_for

_PATIENCE = 1.0
"""Seconds that nobody minds waiting without a word."""
_PAUSE = 0.1


class Progress:
    """Shows nothing where standard error is no terminal, and nothing of work that ends within a second."""

    def __init__(self) -> None:
        self._enabled = sys.stderr.isatty() and style_for("auto", sys.stderr).enabled
        self._next = time.monotonic() + _PATIENCE
        self._drawn = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._erase()

    def show(self, text: str, *, at_once: bool = False) -> None:
        """What is being done; ``at_once``: nothing will be shown for a while after this."""
        now = time.monotonic()
        if not self._enabled or (now < self._next and not at_once):
            return
        self._next = max(self._next, now + _PAUSE)
        self._erase()
        sys.stderr.write(cut(text, shutil.get_terminal_size().columns - 1))
        sys.stderr.flush()
        self._drawn = True

    def _erase(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
            self._drawn = False
