"""One Python text from the cells of a notebook, line by line, and the way back; the file that Jupyter writes.

IPython's own syntax is no Python: lines of magics and shell escapes are blanked (``pass`` where a block needs a
statement), whole cells where a cell magic hands them to another interpreter. Every cell keeps its number of lines.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from ranksafe.source.position import Position
from ranksafe.source.text import split_lines

_SUFFIX: Final = ".ipynb"

_MAGIC_LINE = re.compile(r"^(\s*)(?:[%!?]|[\w.]+\?{1,2}\s*$)")
_MAGIC_VALUE = re.compile(r"^(\s*[\w.\[\]'\",][\w.\[\]'\", ]*=\s*)[%!].*$")
_CELL_MAGIC = re.compile(r"^\s*%%(\w+)")
PYTHON_CELL_MAGICS: Final = frozenset({"capture", "debug", "prun", "time", "timeit"})
"""Cell magics whose cell is Python still (IPython 9, built-in magics)."""


Name = TypeVar("Name")


@dataclass(frozen=True, slots=True)
class CellStart(Generic[Name]):
    """Where a cell begins in the notebook's text; ``name`` is an editor's URI, or the cell's number in its file."""

    name: Name
    first_line: int
    line_count: int


class NotANotebook(ValueError):
    """A file that is no notebook of nbformat 4 with cells in Python."""


def is_notebook(path: Path) -> bool:
    """Whether a file's name is that of a notebook."""
    return path.suffix == _SUFFIX


def joined(
    cells: Iterable[tuple[Name, Sequence[str]]],
) -> tuple[list[CellStart[Name]], list[str]]:
    """The cells' Python as the lines of one text, and where each cell begins in it."""
    starts: list[CellStart[Name]] = []
    text: list[str] = []
    for name, cell in cells:
        lines = python_lines(cell)
        if not lines[-1].endswith(("\n", "\r")):
            lines[-1] += "\n"
        starts.append(CellStart(name, len(text), len(lines)))
        text += lines
    return starts, text


def cell_at(starts: Sequence[CellStart[Name]], line: int) -> CellStart[Name]:
    """The cell that a line of the text stands in. ``starts`` is not empty."""
    index = bisect_right([start.first_line for start in starts], line) - 1
    return starts[max(index, 0)]


def in_cell(starts: Sequence[CellStart[int]], place: Position) -> tuple[int, Position]:
    """The number of the cell that a place of the text stands in, and the place there."""
    start = cell_at(starts, place.line)
    return start.name, Position(place.line - start.first_line, place.column)


def code_cells(data: bytes) -> list[tuple[int, list[str]]]:
    """The cells of code in a notebook's file, in their order: its number among all cells, from 1, and its lines.

    Raises NotANotebook. The form is that of nbformat 4.0 to 4.5.
    """
    try:
        notebook = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NotANotebook(str(error)) from error
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise NotANotebook("no `cells` as nbformat 4 has them")
    language = _language(notebook.get("metadata"))
    if language not in (None, "python", "ipython"):
        raise NotANotebook(f"its language is {language}")
    return [
        (number, split_lines(_source(cell)))
        for number, cell in enumerate(cells, start=1)
        if isinstance(cell, dict) and cell.get("cell_type") == "code"
    ]


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    pieces = source if isinstance(source, list) else [source]
    return "".join(piece for piece in pieces if isinstance(piece, str))


def _language(metadata: object) -> str | None:
    """What the kernel runs, as the notebook's metadata say; None where they do not."""
    if not isinstance(metadata, dict):
        return None
    for table, key in (("language_info", "name"), ("kernelspec", "language")):
        found = metadata.get(table)
        said = found.get(key) if isinstance(found, dict) else None
        if isinstance(said, str):
            return said.lower()
    return None


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
