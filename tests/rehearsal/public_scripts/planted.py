"""Failures that are planted in public scripts: read from ``planted.toml``, and put into a script's text."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tests.rehearsal.public_scripts.published import MANIFEST, PublishedScript, scripts

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PLANTED = Path(__file__).parent / "planted.toml"
_UNSEEN = Path(__file__).parent / "unseen.toml"
_HERE = "# here"


@dataclass(frozen=True)
class Edit:
    """Lines ``first`` to ``last`` of the original become ``text``; with ``last`` before ``first`` it goes between."""

    first: int
    last: int
    text: str


@dataclass(frozen=True)
class Planted:
    """One failure, and what must be told of it: status 1, the line that ``# here`` marks (or ``line`` of the original)
    and one of ``kinds``."""

    name: str
    script: str
    concerns: str
    what: str
    why: str
    kinds: tuple[str, ...]
    edits: tuple[Edit, ...]
    line: int = 0
    also: tuple[int, ...] = ()
    """Other lines of the original where it may be told as well."""
    file: str = ""
    """Beside the script; empty: the script."""


def plants() -> list[Planted]:
    """What is planted, in the order of the list."""
    entries = tomllib.loads(PLANTED.read_text("utf-8")).get("planted", [])
    return [
        Planted(
            **{
                **entry,
                "kinds": tuple(entry["kinds"]),
                "also": tuple(entry.get("also", ())),
                "edits": tuple(_edit(each) for each in entry["edits"]),
            }
        )
        for entry in entries
    ]


def _edit(entry: dict[str, str | int]) -> Edit:
    first = int(entry["line"]) if "line" in entry else int(entry["before"])
    return Edit(
        first, int(entry.get("to", first)) if "line" in entry else first - 1, str(entry["text"])
    )


def scripts_by_name() -> dict[str, PublishedScript]:
    """The scripts of all lists, by their names."""
    lists = (MANIFEST, _UNSEEN, PLANTED)
    return {script.name: script for each in lists for script in scripts(each)}


def patched(text: str, planted: Planted) -> tuple[str, list[int]]:
    """The text with what is planted, and the lines where it may show. Raises ValueError where none is marked, or
    an edit lies behind the end."""
    lines = text.splitlines(keepends=True)
    places = {line: line for line in (planted.line, *planted.also) if line}
    for edit in sorted(planted.edits, key=lambda each: -each.first):
        new = edit.text.strip("\n").splitlines(keepends=True)
        new[-1] += "\n"
        if edit.first > len(lines):
            raise ValueError(f"{planted.name}: the text has no line {edit.first}")
        lines[edit.first - 1 : edit.last] = new
        grown = len(new) - (edit.last - edit.first + 1)
        for original in places:
            places[original] += grown * (original >= edit.first)
    found = [*places.values(), *(row for row, line in enumerate(lines, 1) if _HERE in line)]
    if not found:
        raise ValueError(f"{planted.name}: no line is marked")
    return "".join(lines), found
