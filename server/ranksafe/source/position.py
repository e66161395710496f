"""Positions in source text.

Lines and columns are 0-based; a column counts Unicode code points from the start of its line. The standard
``ast`` counts UTF-8 bytes and editors usually count UTF-16 code units: `ranksafe.source.text` and `ranksafe.lsp`
convert at their borders, everything between speaks code points.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place between two characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """The characters from ``start`` up to, not including, ``end``."""

    start: Position
    end: Position

    def contains(self, position: Position) -> bool:
        """Whether ``position`` lies in the range, its end included (where a cursor may rest)."""
        return self.start <= position <= self.end


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text in ``range`` by ``new_text``."""

    range: Range
    new_text: str
