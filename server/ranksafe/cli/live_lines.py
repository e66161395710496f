"""The last lines of a terminal, kept up to date below what scrolls by: what each rank does."""

from __future__ import annotations

import shutil
import sys

from ranksafe.cli.terminal import Style, cut, harmless
from ranksafe.localization import Language
from ranksafe.runs.model import RunEvent
from ranksafe.runs.watch.live import together

_MOST_LINES = 10
_ERASE_BELOW = "\x1b[J"


class LiveLines:
    """On standard error, where that is a terminal that understands escape sequences; elsewhere nothing at all."""

    def __init__(self, style: Style, language: Language, *, wanted: bool) -> None:
        self._style = style
        self._language = language
        self._enabled = wanted and style.enabled and sys.stderr.isatty()
        self._lines: list[str] = []
        self._drawn = 0

    def show(self, event: RunEvent) -> None:
        """Take over what an event says of the ranks."""
        lines = [
            f"{who}: {text.in_language(self._language)}" for who, text in together(event.states)
        ]
        self._lines = [
            harmless(line.partition("\n")[0]) for line in (*lines, *event.devices)[:_MOST_LINES]
        ]
        self.erase()
        self.draw()

    def erase(self) -> None:
        """Make room for a line that stays."""
        if self._drawn:
            sys.stdout.flush()
            sys.stderr.write(f"\x1b[{self._drawn}A\r{_ERASE_BELOW}")
            sys.stderr.flush()
            self._drawn = 0

    def draw(self) -> None:
        """Put the lines back."""
        if not self._enabled or not self._lines:
            return
        width = shutil.get_terminal_size().columns - 1
        sys.stdout.flush()
        sys.stderr.write(
            "".join(self._style.paint("dim", cut(line, width)) + "\n" for line in self._lines)
        )
        sys.stderr.flush()
        self._drawn = len(self._lines)

    def end(self) -> None:
        """The run is over."""
        self.erase()
        self._lines = []
