"""Which lines of the user's files each rank was seen to execute (``ranksafe_agent.reached`` writes them down)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ranksafe.runs.records.recorder import START_FILE
from ranksafe.source.plain_files import open_plain

_LARGEST_FILE = 2_000_000
_MOST_LINES = 64 * 2**20
"""Bytes of one rank's list."""

Executed = Mapping[Path, frozenset[int]]
"""By file, links resolved."""


def executed_lines(directory: Path) -> dict[int, Executed | None]:
    """By rank; None where a part of its lines is not known. Empty where nobody wrote any down."""
    found: dict[int, Executed | None] = {}
    for path in directory.glob("rank*.reached"):
        rank = path.stem.removeprefix("rank")
        if rank.isdigit():
            found[int(rank)] = _of_rank(path)
    return found


def lines_of_any(directory: Path) -> Executed:
    """The lines that any rank has executed; empty where a part of them is not known."""
    ranks = _all_known(directory)
    files = {file for executed in ranks for file in executed}
    return {file: frozenset().union(*(each.get(file, ()) for each in ranks)) for file in files}


def lines_of_all(directory: Path) -> Executed:
    """The lines that every rank has executed; empty where a part of them is not known."""
    ranks = _all_known(directory)
    return {
        file: lines.intersection(*(each.get(file, ()) for each in ranks))
        for executed in ranks[:1]
        for file, lines in executed.items()
    }


def unchanged_text(path: Path, directory: Path) -> str | None:
    """The text of a file that is as it was when the run of this folder started."""
    try:
        seen = path.stat()
        if seen.st_size > _LARGEST_FILE or seen.st_mtime > (directory / START_FILE).stat().st_mtime:
            return None
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        return None


def _all_known(directory: Path) -> list[Executed]:
    ranks = list(executed_lines(directory).values())
    return [] if None in ranks else [each for each in ranks if each is not None]


def _of_rank(path: Path) -> Executed | None:
    try:
        with open_plain(path) as file:
            text = os.fsdecode(file.read(_MOST_LINES))
    except OSError:
        return None
    found: dict[Path, set[int]] = {}
    for entry in text.splitlines():
        line, _, filename = entry.partition("\t")
        if not line.isdigit() or line == "0":
            return None
        found.setdefault(Path(filename), set()).add(int(line))
    return {file: frozenset(lines) for file, lines in found.items()}
