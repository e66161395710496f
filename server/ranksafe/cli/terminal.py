"""Colours, widths and messages on a terminal."""

from __future__ import annotations

import os
import sys
import unicodedata
from dataclasses import dataclass
from typing import Literal, TextIO

ColorChoice = Literal["auto", "always", "never"]

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "1;31",
    "green": "32",
    "yellow": "1;33",
    "blue": "1;34",
    "cyan": "36",
}


@dataclass(frozen=True, slots=True)
class Style:
    """Paints text, or leaves it plain."""

    enabled: bool

    def paint(self, color: str, text: str) -> str:
        """``text`` in one of the colours ``bold``, ``dim``, ``red``, ``green``, ``yellow``, ``blue``, ``cyan``."""
        return f"\x1b[{_CODES[color]}m{text}\x1b[0m" if self.enabled and text else text


def style_for(choice: ColorChoice, stream: TextIO) -> Style:
    """Colours as asked for; with ``auto`` on terminals only, and as NO_COLOR and FORCE_COLOR say (no-color.org)."""
    if choice != "auto":
        return Style(choice == "always")
    if os.environ.get("NO_COLOR"):
        return Style(False)
    if os.environ.get("FORCE_COLOR"):
        return Style(True)
    return Style(stream.isatty() and os.environ.get("TERM") != "dumb")


def display_width(text: str) -> int:
    """Terminal cells that ``text`` takes: two for Chinese characters and emoji, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(_character_width(character) for character in text)


def _character_width(character: str) -> int:
    if unicodedata.combining(character) or character in "\u200b\u200d\ufe0e\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fail(message: str, status: int) -> int:
    """Say on stderr what went wrong; returns ``status``."""
    print(f"ranksafe: {message}", file=sys.stderr)
    return status


def note(message: str) -> None:
    """Say something on stderr that is no reason to stop."""
    print(f"ranksafe: {message}", file=sys.stderr)
