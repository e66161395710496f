"""The programs of the benchmark and what their headers claim.

A pair is a folder with ``incorrect.py`` and ``corrected.py``; a folder with ``corrected.py`` alone is an idiom that
looks wrong and is right. The last paragraph of each docstring is the header, one
``key: value`` per line; docs/rank-bench.md says what the keys mean.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
INCORRECT, CORRECTED = "incorrect", "corrected"

_KEYS = {
    INCORRECT: ("source", "bug", "ranks", "expect", "line", "decidable", "shows"),
    CORRECTED: ("source", "bug", "ranks", "expect", "shows"),
}
_OPTIONAL = {INCORRECT: ("file",), CORRECTED: ("decidable",)}
_CODE = re.compile(r"RS4\d\d\Z")
_KEY_LINE = re.compile(r"([a-z]+):(?:\s+(.*))?\Z")
_SOURCE = re.compile(r"(https?://\S+|documented: \S.*)\Z")


class HeaderError(Exception):
    """A header that cannot be used; the text names the file and says what is wrong with it."""


_RACE = "hang sometimes"


@dataclass(frozen=True, slots=True)
class Shows:
    """What running a program shows: ``kind`` is hang, error, silent or fine; ``pattern`` belongs to error and silent."""

    kind: str
    pattern: str = ""
    sometimes: bool = False
    """A hang that is up to who comes first: other runs end well."""


@dataclass(frozen=True, slots=True)
class Program:
    """One program with its header."""

    path: Path
    sentence: str
    source: str
    bug: str
    ranks: int
    expect: str | None
    """The code of the expected finding; None where nothing may be found."""
    file: Path | None
    """Where the finding is expected; None where nothing may be found."""
    row: int | None
    """Its line, from 1."""
    line: str
    decidable: bool
    reason: str
    """Why no static analysis could know, where it could not."""
    shows: Shows

    @property
    def variant(self) -> str:
        """``incorrect`` or ``corrected``."""
        return self.path.stem

    @property
    def name(self) -> str:
        """``area/short_name/variant``, unique in a folder of programs."""
        return f"{self.path.parent.parent.name}/{self.path.parent.name}/{self.variant}"

    @property
    def files(self) -> list[Path]:
        """All files that this program may consist of: those of its folder but the twin's own."""
        other = CORRECTED if self.variant == INCORRECT else INCORRECT
        return sorted(
            file
            for file in self.path.parent.rglob("*.py")
            if file.stem != other and not file.stem.endswith(f"_{other}")
        )


@dataclass(frozen=True, slots=True)
class Pair:
    """A program with a bug and its smallest right change."""

    incorrect: Program
    corrected: Program

    @property
    def name(self) -> str:
        """``area/short_name``."""
        return self.incorrect.name.rpartition("/")[0]


def read_pairs(folder: Path = PROGRAMS) -> list[Pair]:
    """All pairs below a folder, by name. Raises HeaderError for the first that cannot be used."""
    return [read_pair(place) for place in folders_with(folder, INCORRECT)]


def read_idioms(folder: Path = PROGRAMS) -> list[Program]:
    """All programs below a folder that stand alone, by name. Raises HeaderError."""
    alone = sorted({*folders_with(folder, CORRECTED)} - {*folders_with(folder, INCORRECT)})
    return [read_program(place / "corrected.py") for place in alone]


def folders_with(folder: Path, *variants: str) -> list[Path]:
    """The folders that hold one of the variants; of every program where none is named."""
    names = [f"{variant}.py" for variant in variants or (INCORRECT, CORRECTED)]
    return sorted({file.parent for file in folder.rglob("*.py") if file.name in names})


def read_pair(folder: Path) -> Pair:
    """Raises HeaderError where a program is missing, wrong, or the two do not belong together."""
    for name in (INCORRECT, CORRECTED):
        if not (folder / f"{name}.py").is_file():
            raise HeaderError(f"{folder}: {name}.py is missing")
    pair = Pair(read_program(folder / "incorrect.py"), read_program(folder / "corrected.py"))
    for key in ("bug", "ranks"):
        ours, theirs = getattr(pair.incorrect, key), getattr(pair.corrected, key)
        if ours != theirs:
            raise HeaderError(
                f"{folder}: {key} is {ours} in incorrect.py and {theirs} in corrected.py"
            )
    return pair


def read_program(path: Path) -> Program:
    """Raises HeaderError."""
    try:
        sentence, values = _read_docstring(path)
        return _program(path, sentence, values)
    except (OSError, SyntaxError, UnicodeDecodeError, ValueError) as error:
        raise HeaderError(f"{path}: {error}") from None


def problems(folder: Path) -> Iterator[str]:
    """What is wrong below a folder, a sentence for each pair or idiom that cannot be used."""
    for place in folders_with(folder):
        try:
            if (place / "incorrect.py").exists():
                read_pair(place)
            else:
                read_program(place / "corrected.py")
        except HeaderError as error:
            yield str(error)


def _read_docstring(path: Path) -> tuple[str, dict[str, str]]:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not docstring:
        raise ValueError("has no docstring")
    *description, header = re.split(r"\n[ \t]*\n", docstring)
    if not description:
        raise ValueError("the docstring needs a sentence, an empty line and the header")
    values: dict[str, str] = {}
    for line in header.splitlines():
        found = _KEY_LINE.match(line.strip())
        if found is None:
            raise ValueError(f"`{line.strip()}` is no `key: value` of the header")
        if found[1] in values:
            raise ValueError(f"{found[1]} stands twice in the header")
        values[found[1]] = (found[2] or "").strip()
    return " ".join(description[0].split()), values


def _program(path: Path, sentence: str, values: dict[str, str]) -> Program:
    variant = path.stem
    required, optional = _KEYS[variant], _OPTIONAL[variant]
    for key in values:
        if key not in required and key not in optional:
            raise ValueError(f"unknown key {key}; {path.name} has {', '.join(required)}")
    for key in required:
        if not values.get(key):
            raise ValueError(f"{key} is missing")
    if not _SOURCE.match(values["source"]):
        raise ValueError("source is neither an address nor `documented: ...`")
    if not _CODE.match(values["bug"]):
        raise ValueError(f"bug is {values['bug']}, which is no RS4xx code")
    if values["ranks"] not in ("2", "3", "4"):
        raise ValueError(f"ranks is {values['ranks']}, not 2, 3 or 4")
    expected = values["bug"] if variant == INCORRECT else "clean"
    if values["expect"] != expected:
        raise ValueError(f"expect is {values['expect']}, and should be {expected}")
    decidable, reason = _decidable(values.get("decidable", "yes"))
    file, row = _place(path, values) if variant == INCORRECT else (None, None)
    return Program(
        path=path,
        sentence=sentence,
        source=values["source"],
        bug=values["bug"],
        ranks=int(values["ranks"]),
        expect=expected if variant == INCORRECT else None,
        file=file,
        row=row,
        line=values.get("line", ""),
        decidable=decidable,
        reason=reason,
        shows=_shows(values["shows"], variant),
    )


def _decidable(text: str) -> tuple[bool, str]:
    if text == "yes":
        return True, ""
    word, _, reason = text.partition(":")
    if word != "no" or not reason.strip():
        raise ValueError(f"decidable is `{text}`, neither `yes` nor `no: reason`")
    return False, reason.strip()


def _place(path: Path, values: dict[str, str]) -> tuple[Path, int]:
    file = path.parent / values["file"] if values.get("file") else path
    if not file.is_file():
        raise ValueError(f"file {values['file']} is not beside it")
    lines = file.read_text(encoding="utf-8").splitlines()
    rows = [row for row, line in enumerate(lines, 1) if line.strip() == values["line"]]
    if len(rows) != 1:
        where = "" if file == path else f" in {file.name}"
        raise ValueError(f"line `{values['line']}` occurs {len(rows)} times{where}, not once")
    return file, rows[0]


def _shows(text: str, variant: str) -> Shows:
    if text == _RACE and variant == INCORRECT:
        return Shows("hang", sometimes=True)
    kind, _, pattern = text.partition(" ")
    pattern = pattern.strip()
    allowed = ("hang", "error", "silent") if variant == INCORRECT else ("fine",)
    if kind not in allowed:
        raise ValueError(f"shows is `{text}`, and begins with none of: {', '.join(allowed)}")
    if (kind in ("error", "silent")) != bool(pattern):
        raise ValueError(f"shows: {kind} {'has no' if pattern else 'needs a'} regular expression")
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"shows: `{pattern}` is no regular expression ({error})") from None
    return Shows(kind, pattern)
