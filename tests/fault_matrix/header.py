"""The programs of the fault matrix and what must be seen of each, read from the header in its docstring.

The last paragraph of a program's docstring is the header, one ``key: value`` per line, a deeper line continuing the one
above it:

* ``fault``: the name of the row, ``{case}`` standing for the case
* ``cases``: words; the program is run with each as its argument, a row each (optional)
* ``outcome``: ``failed`` or ``succeeded``
* ``rank``: the rank to blame; ``any`` where all fail alike, ``none`` where nothing fails
* ``kind``: of the root failure, several joined with ``or``; ``none`` where nothing fails
* ``line``: how the blamed line of the source begins, or ``none``
* ``waits``: how the line begins on which the other rank waits (optional)
* ``hosts``: how many hosts the program needs (optional, 1); once it prints ``take away HOST``, that one is
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent / "programs"
_KEYS = ("fault", "outcome", "rank", "kind", "line")
_OPTIONAL = ("cases", "hosts", "waits")
_OUTCOMES = ("failed", "succeeded")
_NOTHING = "none"


class HeaderError(Exception):
    """A header that cannot be used; the text names the file and says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A row of the matrix: a program, its argument, and what must be seen."""

    program: Path
    name: str
    case: str | None
    outcome: str
    rank: int | None
    """None: any rank, or none where nothing fails."""
    kinds: frozenset[str]
    """Of the root failure; empty where nothing may be reported."""
    line: int | None
    """From 1; None where nothing may be reported."""
    waits: int | None
    """The line that another rank waits on."""
    hosts: int = 1
    """More than one: a host goes down, which only a cluster of the tests' own can bear."""

    @property
    def identifier(self) -> str:
        """Short and unique, for test names and ``--only``."""
        return f"{self.program.stem}-{self.case}" if self.case else self.program.stem

    @property
    def arguments(self) -> tuple[str, ...]:
        """Of the program."""
        return (self.case,) if self.case else ()


def read_faults(folder: Path = PROGRAMS) -> list[Fault]:
    """All rows, by program. Raises HeaderError for the first header that cannot be used."""
    return [fault for program in sorted(folder.glob("*.py")) for fault in faults_of(program)]


def faults_of(program: Path) -> Iterator[Fault]:
    """The rows of one program. Raises HeaderError."""
    source = program.read_text(encoding="utf-8")
    told = _header(program, source)
    cases: list[str | None] = [*told.get("cases", "").split()]
    for case in cases or [None]:
        filled = {key: value.replace("{case}", case or "") for key, value in told.items()}
        yield _fault(program, source, filled, case)


def _header(program: Path, source: str) -> dict[str, str]:
    docstring = ast.get_docstring(ast.parse(source)) or ""
    told: dict[str, str] = {}
    key = ""
    for line in docstring.rpartition("\n\n")[2].splitlines():
        if line.startswith(" ") and key:
            told[key] += " " + line.strip()
            continue
        key, _, value = line.partition(": ")
        told[key] = value.strip()
    missing = [key for key in _KEYS if not told.get(key)]
    unknown = [key for key in told if key not in (*_KEYS, *_OPTIONAL)]
    if missing or unknown:
        raise HeaderError(f"{program.name}: missing {missing}, unknown {unknown}")
    return told


def _fault(program: Path, source: str, told: dict[str, str], case: str | None) -> Fault:
    rank, kind = told["rank"], told["kind"]
    if told["outcome"] not in _OUTCOMES:
        raise HeaderError(f"{program.name}: the outcome is one of {_OUTCOMES}")
    if not (rank.isdigit() or rank in ("any", _NOTHING)):
        raise HeaderError(f"{program.name}: no rank: {rank}")
    nothing = [told[key] == _NOTHING for key in ("rank", "kind", "line")]
    if any(nothing) != all(nothing) or all(nothing) != (told["outcome"] == "succeeded"):
        raise HeaderError(f"{program.name}: rank, kind and line are 'none' where nothing fails")
    return Fault(
        program=program,
        name=told["fault"],
        case=case,
        outcome=told["outcome"],
        rank=int(rank) if rank.isdigit() else None,
        kinds=frozenset(kind.split(" or ")) - {_NOTHING},
        line=None if told["line"] == _NOTHING else _row(program, source, told["line"]),
        waits=_row(program, source, told["waits"]) if "waits" in told else None,
        hosts=int(told.get("hosts", "1")),
    )


def _row(program: Path, source: str, beginning: str) -> int:
    """The one line of code that begins so."""
    docstring_end = ast.parse(source).body[0].end_lineno or 0
    found = [
        row
        for row, line in enumerate(source.splitlines(), 1)
        if row > docstring_end and line.strip().startswith(beginning)
    ]
    if len(found) != 1:
        raise HeaderError(f"{program.name}: {len(found)} lines begin with {beginning!r}")
    return found[0]
