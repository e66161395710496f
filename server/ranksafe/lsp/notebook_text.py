"""One Python text from the cells of a notebook, line by line, and the way back.

IPython's own syntax is no Python: lines of magics and shell escapes are blanked (``pass`` where a block needs a
statement), whole cells where a cell magic hands them to another interpreter. Every cell keeps its number of lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_MAGIC_LINE = re.compile(r"^(\s*)(?:[%!?]|[\w.]+\?{1,2}\s*$)")
_MAGIC_VALUE = re.compile(r"^(\s*[\w.\[\]'\", ]+=\s*)[%!].*$")
_CELL_MAGIC = re.compile(r"^\s*%%(\w+)")
PYTHON_CELL_MAGICS: Final = frozenset({"capture", "debug", "prun", "time", "timeit"})
"""Cell magics whose cell is Python still (IPython 9, built-in magics)."""


@dataclass(frozen=True, slots=True)
class CellStart:
    """Where a cell begins in the notebook's text."""

    uri: str
    first_line: int
    line_count: int


def python_lines(lines: Sequence[str]) -> list[str]:
    """A cell's lines with everything blanked that is not Python. Ends of lines are kept."""
    first = next((line for line in lines if line.strip()), "")
    magic = _CELL_MAGIC.match(first)
    if magic and magic[1] not in PYTHON_CELL_MAGICS:
        return [_end_of(line) for line in lines]
    if not any("%" in line or "!" in line or "?" in line for line in lines):
        return list(lines)
    return _without_magics(lines)


def _without_magics(lines: Sequence[str]) -> list[str]:
    result: list[str] = []
    continued = False
    for line in lines:
        if continued:
            # Only a magic's own line may be continued: inside brackets a leading % is an operator.
            result.append(_end_of(line))
        else:
            result.append(_blanked(line, result))
        continued = (continued or result[-1] != line) and line.rstrip("\r\n").endswith("\\")
    return result


def _blanked(line: str, before: Sequence[str]) -> str:
    magic = _MAGIC_LINE.match(line)
    if magic and not _is_continuation(before):
        return f"{magic[1]}pass{_end_of(line)}"
    value = _MAGIC_VALUE.match(line.rstrip("\r\n"))
    if value:
        return f"{value[1]}None{_end_of(line)}"
    return line


def _is_continuation(before: Sequence[str]) -> bool:
    """Whether the line goes on from an open bracket or a backslash, by a count that ignores strings: enough to tell
    ``total = (a`` / ``% b)`` from a magic."""
    text = "".join(before)
    depth = sum(map(text.count, "([{")) - sum(map(text.count, ")]}"))
    return depth > 0 or text.rstrip("\r\n").endswith("\\")


def _end_of(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]
