"""Literate cases: ``cases.md`` of a rule's folder, read into what must be reported where and what a fix must change.

The format is described in CONTRIBUTING.md.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranksafe.launch.context import LaunchContext, Launcher

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_EXPECTATION = re.compile(
    r"\s*#\s*(?P<level>error|warning|information):\s*(?P<codes>RS\d{3}(?:\s*,\s*RS\d{3})*)"
)
_FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<info>[^`]*)$")
_FILE = re.compile(r"^#\s*file:\s*(?P<name>\S+)\s*$")


class CaseFormatError(Exception):
    """A cases.md that breaks the contract; the text says where and how."""


@dataclass(frozen=True, slots=True, order=True)
class Expected:
    """One finding that must be there. ``line`` is 1-based, as in the fence."""

    line: int
    code: str
    level: str


@dataclass(frozen=True, slots=True)
class ExpectedFix:
    """The lines that a fix removes and adds, in order. ``key`` None: the finding's first fix."""

    key: str | None
    removed: tuple[str, ...]
    added: tuple[str, ...]


@dataclass(slots=True)
class CaseSource:
    """One file of a case, its expectation comments taken out."""

    name: str
    text: str
    expected: list[Expected]
    fixes: list[ExpectedFix] = field(default_factory=list)


@dataclass(slots=True)
class Case:
    """One heading."""

    heading: str
    line: int
    prose: str = ""
    launch: LaunchContext = field(default_factory=LaunchContext)
    sources: list[CaseSource] = field(default_factory=list)


def read_cases(path: Path) -> list[Case]:
    """All cases of a file. Raises CaseFormatError."""
    cases: list[Case] = []
    lines = path.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        fence = _FENCE.match(line)
        if fence is not None:
            end = _end_of_fence(path, lines, number, fence["ticks"])
            if not cases:
                raise CaseFormatError(f"{path}:{number + 1}: a fence before the first heading")
            _add_fence(path, number, cases[-1], fence["info"].strip(), lines[number + 1 : end])
            number = end
        elif line.startswith("## "):
            cases.append(Case(line[3:].strip(), number + 1))
        elif cases and not cases[-1].sources:
            cases[-1].prose += line + "\n"
        number += 1
    return cases


def without_expectation(line: str) -> str:
    """A line of a fence as it is analysed."""
    return _EXPECTATION.sub("", line).rstrip()


def _end_of_fence(path: Path, lines: list[str], start: int, ticks: str) -> int:
    for number in range(start + 1, len(lines)):
        if lines[number].rstrip() == ticks:
            return number
    raise CaseFormatError(f"{path}:{start + 1}: the fence is not closed")


def _add_fence(path: Path, number: int, case: Case, info: str, body: list[str]) -> None:
    language, _, options = info.partition(" ")
    if language == "toml" and options == "launch":
        case.launch = _launch(path, number, "\n".join(body))
    elif language == "python":
        case.sources.append(_source(body, len(case.sources)))
    elif language == "diff":
        if not case.sources:
            raise CaseFormatError(f"{path}:{number + 1}: a diff before its python fence")
        key = options.removeprefix("fix=").strip() or None
        case.sources[-1].fixes.append(_fix(key, body))
    else:
        raise CaseFormatError(f"{path}:{number + 1}: unknown fence {info!r}")


def _source(body: list[str], index: int) -> CaseSource:
    name = "train.py" if index == 0 else f"module_{index}.py"
    named = _FILE.match(body[0]) if body else None
    expected = []
    for number, line in enumerate(body, start=1):
        for match in _EXPECTATION.finditer(line):
            for code in match["codes"].split(","):
                expected.append(Expected(number, code.strip(), match["level"]))
    text = "\n".join(map(without_expectation, body)) + "\n"
    return CaseSource(named["name"] if named else name, text, expected)


def _fix(key: str | None, body: list[str]) -> ExpectedFix:
    def lines(sign: str) -> tuple[str, ...]:
        return tuple(without_expectation(line[1:]) for line in body if line.startswith(sign))

    return ExpectedFix(key, lines("-"), lines("+"))


def _launch(path: Path, number: int, text: str) -> LaunchContext:
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CaseFormatError(f"{path}:{number + 1}: {error}") from error
    unknown = set(table) - {"gpus", "launcher", "versions"}
    if unknown:
        raise CaseFormatError(f"{path}:{number + 1}: unknown keys {sorted(unknown)}")
    return LaunchContext(
        gpus=table.get("gpus"),
        launcher=Launcher(table.get("launcher", "unknown")),
        versions=table.get("versions", {}),
    )
