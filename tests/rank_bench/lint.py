"""Lints the programs with ranksafe as a user would, and scores what it says.

Every program becomes a project of its own (a copy without its twin) whose ``ranksafe.toml`` says how many ranks it
has; one ``ranksafe check`` reads them all.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranksafe.checker.registry import Registry
from ranksafe.cli.main import main as run_ranksafe

from tests.rank_bench.header import Pair, Program

AREA = "RS4"
STRICT, LINE_ONLY, MISSED = "strict", "line only", "missed"


class NotLinted(Exception):
    """ranksafe could not check the programs; the text says why."""


@dataclass(frozen=True, slots=True)
class Message:
    """What a tool says of a place: ``file`` relative to the program's folder, ``row`` from 1."""

    code: str
    file: str
    row: int
    text: str

    def as_json(self) -> dict[str, Any]:
        return {"code": self.code, "file": self.file, "row": self.row, "text": self.text}


@dataclass(frozen=True, slots=True)
class Score:
    """A pair as judged: what was said of the expected line, and what should not have been said."""

    pair: Pair
    outcome: str
    hits: tuple[Message, ...]
    """On the expected line."""
    noise: tuple[Message, ...]
    """Elsewhere in the incorrect program."""
    noise_on_twin: tuple[Message, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "outcome": self.outcome,
            "hits": [message.as_json() for message in self.hits],
            "noise": [message.as_json() for message in self.noise],
            "noise_on_twin": [message.as_json() for message in self.noise_on_twin],
        }


def rules_exist() -> bool:
    """Whether any rule of the area is registered."""
    return not Registry.load().names_nothing(AREA)


def score_pairs(pairs: Sequence[Pair]) -> list[Score]:
    """Lint and judge all pairs. Raises NotLinted."""
    programs = [program for pair in pairs for program in (pair.incorrect, pair.corrected)]
    found = lint(programs)
    return [judge(pair, found[pair.incorrect.name], found[pair.corrected.name]) for pair in pairs]


def judge(pair: Pair, of_incorrect: Sequence[Message], of_corrected: Sequence[Message]) -> Score:
    """Strict: the right rule on the right line. Noise: anything elsewhere, and everything on the twin."""
    program = pair.incorrect
    assert program.file is not None
    file = program.file.relative_to(program.path.parent).as_posix()
    hits = [
        message for message in of_incorrect if (message.file, message.row) == (file, program.row)
    ]
    right = any(message.code == program.expect for message in hits)
    return Score(
        pair,
        STRICT if right else LINE_ONLY if hits else MISSED,
        tuple(hits),
        tuple(message for message in of_incorrect if message not in hits),
        tuple(of_corrected),
    )


def lint(programs: Iterable[Program]) -> dict[str, list[Message]]:
    """The findings of the area in each program, by its name. Raises NotLinted."""
    with tempfile.TemporaryDirectory(prefix="ranksafe-rank-bench-") as name:
        root = Path(name).resolve()
        found: dict[str, list[Message]] = {}
        for program in programs:
            copy_program(program, root / program.name)
            settings = f'select = ["{AREA}"]\npreview = true\ngpus = {program.ranks}\nlauncher = "torchrun"\n'
            (root / program.name / "ranksafe.toml").write_text(settings, encoding="utf-8")
            found[program.name] = []
        for finding in check(root):
            place = Path(finding["filename"]).relative_to(root)
            name = "/".join(place.parts[:3])
            found[name].append(
                Message(
                    finding["code"],
                    Path(*place.parts[3:]).as_posix(),
                    finding["location"]["row"],
                    finding["message"],
                )
            )
        return found


def copy_program(program: Program, target: Path) -> None:
    """The files that a program may consist of."""
    for file in program.files:
        copied = target / file.relative_to(program.path.parent)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copied)


def check(folder: Path, *more: str) -> list[dict[str, Any]]:
    """The findings of the area that ``ranksafe check`` prints as JSON. Raises NotLinted."""
    out, err = io.StringIO(), io.StringIO()
    words = ["check", str(folder), "--lang", "en", "--output-format", "json"]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run_ranksafe([*words, "--no-cache", "--exit-zero", *more])
    if status != 0:
        raise NotLinted(err.getvalue().strip() or f"ranksafe check: exit status {status}")
    findings: list[dict[str, Any]] = json.loads(out.getvalue())
    return [finding for finding in findings if finding["code"].startswith(AREA)]
