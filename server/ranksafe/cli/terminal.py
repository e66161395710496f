"""Colours, widths and messages on a terminal."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from dataclasses import dataclass
from typing import Literal, TextIO

from ranksafe.localization import Translated

ColorChoice = Literal["auto", "always", "never"]
CANNOT_WRITE = Translated("{path} cannot be written: {reason}", "无法写入 {path}：{reason}")

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


_COMMANDS = re.compile(
    "(\x1b\\[(?:0|1|2|1;31|32|1;33|34|36)m)"
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
"""Group 1: what `Style` writes. All others command a terminal, or make a line read in another order than it is."""


def harmless(text: str) -> str:
    """``text`` of a log, a record or another host as it may be printed: it has colours of ours and nothing else that a
    terminal obeys. Line ends and tabs stay."""
    return text if text.isprintable() else _COMMANDS.sub(_kept, text)


def _kept(found: re.Match[str]) -> str:
    return found[1] or "\ufffd"


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


def cut(line: str, width: int) -> str:
    """As much of a line as fits in that many cells: a wrapped line could not be erased."""
    return _cut(line, width) if display_width(line) > width else line


def _cut(line: str, width: int) -> str:
    used, kept = 0, ""
    for character in line:
        used += display_width(character)
        if used > width - 1:
            return kept + "…"
        kept += character
    return kept


def fail(message: str, status: int) -> int:
    """Say on stderr what went wrong; returns ``status``."""
    note(message)
    return status


def note(message: str) -> None:
    """Say something on stderr that is no reason to stop."""
    print(f"ranksafe: {harmless(message)}", file=sys.stderr)
