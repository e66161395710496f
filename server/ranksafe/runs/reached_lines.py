"""Which lines of the user's files the ranks of a run were seen to execute, as far as all of it is known."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ranksafe.runs.plain_files import open_plain
from ranksafe.runs.records.recorder import START_FILE

_LARGEST_FILE: Final = 2_000_000
_MOST_LINES: Final = 64 * 2**20
"""Bytes of one rank's list of lines."""

Lines = dict[Path, set[int]]
"""1-based, by file."""


def lines_by_rank(directory: Path) -> list[Lines]:
    """The lines that each rank has executed; empty where a part of them is not known."""
    ranks: list[Lines] = []
    for path in directory.glob("rank*.reached"):
        found: Lines = {}
        try:
            with open_plain(path) as file:
                text = file.read(_MOST_LINES).decode("utf-8", "surrogateescape")
        except OSError:
            return []
        for entry in text.splitlines():
            line, _, filename = entry.partition("\t")
            if not line.isdigit() or line == "0":
                return []
            found.setdefault(Path(filename), set()).add(int(line))
        ranks.append(found)
    return ranks


def lines_of_any(directory: Path) -> Lines:
    """The lines that any rank has executed; empty where a part of them is not known."""
    found: Lines = {}
    for lines in lines_by_rank(directory):
        for path, own in lines.items():
            found.setdefault(path, set()).update(own)
    return found


def lines_of_all(directory: Path) -> Lines:
    """The lines that every rank has executed; empty where a part of them is not known."""
    ranks = lines_by_rank(directory)
    first, others = ranks[:1], ranks[1:]
    return {
        path: own.intersection(*(lines.get(path, ()) for lines in others))
        for lines in first
        for path, own in lines.items()
    }


def unchanged_text(path: Path, directory: Path) -> str | None:
    """The text of a file that is as it was when the run started."""
    try:
        seen = path.stat()
        if seen.st_size > _LARGEST_FILE or seen.st_mtime > (directory / START_FILE).stat().st_mtime:
            return None
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        return None
