"""Texts made from real ones by random damage, given to whatever reads what others wrote.

    make harden HOURS=0.5           or: python -m tests.hardening.fuzzing HOURS [FIRST-SEED]
    make harden FUZZ=log SEED=7     or: python -m tests.hardening.fuzzing TARGET SEED

A seed makes the same text again. Nothing may be raised, nothing may take a minute, and what two ways lead to must be the
same: a text in pieces and as a whole, a file that was edited and one that was opened so.

Hours and minutes are of processor time: a busy machine neither tries less nor finds more. They are shared out evenly,
and a later call goes on where the last one ended, with the sums in `build/fuzzing`; another first seed, for a process
beside this one, has sums of its own.
"""

from __future__ import annotations

import ast
import json
import os
import random
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from ranksafe.checker.configuration import load_configuration
from ranksafe.runs.diagnosis.diagnose import diagnose
from ranksafe.runs.records.kept_runs import NoSuchRun, run_named
from ranksafe.runs.records.redaction import redacted_text
from ranksafe.runs.report.page import report
from ranksafe.source import parsing
from ranksafe.source.notebook import NotANotebook, code_cells

from tests.hardening.damage import LONGEST_TEXT, ODD, damaged, odd_value
from tests.hardening.measured import ROOT
from tests.hardening.sessions import session
from tests.hardening.test_hostile_reports import EVENTS, RECORD
from tests.hardening.test_large_files import analysed

_LONGEST_SECONDS = 60
_LONGEST_WAIT_SECONDS = 1_800
"""By the clock, for what hangs."""
_BETWEEN_SUMS_SECONDS = 1
"""Some texts are tried a thousand times a second: to write the sums each time takes as long as the trying."""
_KEPT = ROOT / "build" / "fuzzing"
_NOTEBOOK = {
    "nbformat": 4,
    "metadata": {"language_info": {"name": "python"}},
    "cells": [{"cell_type": "code", "source": ["%%time\n", "import torch\n", "!ls\n"]}] * 3,
}
_SETTINGS = """\
[tool.ranksafe]
select = ["RS2", "RS401"]
ignore = ["RS602"]
gpus = 4
launcher = "torchrun"
per-file-ignores = { "tests/*" = ["RS4"] }
"""


@cache
def _code() -> list[str]:
    files = [*(ROOT / "server" / "ranksafe").rglob("*.py"), *(ROOT / "rules").rglob("proof/*.py")]
    return [file.read_text("utf-8")[:LONGEST_TEXT] for file in sorted(files)]


@cache
def _logs() -> list[str]:
    files = sorted(file for file in (ROOT / "tests" / "runs" / "logs").rglob("*") if file.is_file())
    return [file.read_text("utf-8", "replace")[:LONGEST_TEXT] for file in files]


def _parsed(text: str, choose: random.Random) -> None:
    def told(parse: Callable[[str], ast.Module]) -> object:
        try:
            return ast.dump(parse(text), include_attributes=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None  # of two faults in a text, another one may come first

    piece = parsing._PIECE
    parsing._PIECE = choose.choice([40, 300, 2_000])
    try:
        assert told(parsing.parse_python) == told(parsing._parse), "another tree in pieces"
    finally:
        parsing._PIECE = piece


def code(choose: random.Random) -> Iterator[str]:
    text = damaged(choose.choice(_code()), _code(), choose)
    yield text
    if "\0" not in text:
        _parsed(text, choose)
    document = analysed(text)
    assert document.rule_errors == {}, document.rule_errors
    lines = document.source.lines
    at = choose.randrange(len(lines))
    edited = "".join([*lines[:at], choose.choice(ODD) + lines[at], *lines[at + 1 :]])
    document.change(edited, at, at)
    document.settle()
    assert document.rule_errors == {}, document.rule_errors
    if document.status == "complete":  # else the edit tells what is broken
        assert document.findings == analysed(edited).findings, f"edited in line {at}: others"


def log(choose: random.Random) -> Iterator[str]:
    text = damaged(choose.choice(_logs()), _logs(), choose)
    yield text
    for failure in diagnose(text):
        assert failure.explanation.en
    redacted_text(text)


def record(choose: random.Random) -> Iterator[str]:
    values = {"result.json": [RECORD], "rank0.jsonl": EVENTS}
    texts = {
        name: "\n".join(json.dumps(odd_value(each, choose)) for each in lines)
        for name, lines in values.items()
    }
    yield "\n".join(texts.values())
    with tempfile.TemporaryDirectory() as name:
        for file, text in texts.items():
            (Path(name) / file).write_text(text)
        (Path(name) / "log.txt").write_bytes(
            choose.choice(_logs())[:3_000].encode()[choose.randrange(9) :]
        )
        with suppress(NoSuchRun):
            report(run_named(name, Path(name)))


def notebook(choose: random.Random) -> Iterator[str]:
    text = json.dumps(odd_value(_NOTEBOOK, choose))
    text = damaged(text, [text], choose) if choose.random() < 0.5 else text
    yield text
    with suppress(NotANotebook):
        code_cells(text.encode("utf-8", "surrogatepass"))


def settings(choose: random.Random) -> Iterator[str]:
    text = damaged(_SETTINGS, [_SETTINGS], choose)
    yield text
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "pyproject.toml").write_bytes(text.encode("utf-8", "surrogatepass"))
        load_configuration(Path(name))


TARGETS: dict[str, Callable[[random.Random], Iterator[str]]] = {
    "code": code,
    "log": log,
    "record": record,
    "notebook": notebook,
    "settings": settings,
    "session": session,
}
"""Each yields the text that it makes, then reads it."""


def tried(target: str, seed: int) -> tuple[str, str] | None:
    """The text that a seed makes and what went wrong with it; None where nothing did."""
    text = ""
    try:
        with _within_a_minute():
            for made in TARGETS[target](random.Random(f"{target} {seed}")):
                text = made
    except Exception:
        return text, traceback.format_exc()
    return None


@contextmanager
def _within_a_minute() -> Iterator[None]:
    def too_long(*_: object) -> None:
        raise TimeoutError("it takes too long")

    before = [signal.signal(each, too_long) for each in (signal.SIGPROF, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_PROF, _LONGEST_SECONDS)
    signal.setitimer(signal.ITIMER_REAL, _LONGEST_WAIT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGPROF, before[0])
        signal.signal(signal.SIGALRM, before[1])


def _failed(target: str, seed: int) -> bool:
    """Try one, and keep the text that something is wrong with."""
    wrong = tried(target, seed)
    if wrong is not None:
        file = _KEPT / f"{target}-{seed}.txt"
        _KEPT.mkdir(parents=True, exist_ok=True)
        file.write_text(wrong[0], "utf-8", "surrogatepass")
        print(f"{target}, seed {seed}: {file}\n{wrong[1]}", flush=True)
    return wrong is not None


def _processor_seconds() -> float:
    """Of this process, and of its children that have ended."""
    return sum(os.times()[:4])


def _tried_for(hours: float, first: int) -> bool:
    """Whether all went well, for so long."""
    file = _KEPT / f"from-{first}.json"
    sums = {target: {"seeds": 0, "seconds": 0.0, "failed": 0} for target in TARGETS}
    with suppress(FileNotFoundError):
        sums |= json.loads(file.read_text())
    failed = 0
    kept = _processor_seconds()
    until = kept + hours * 3600
    while (before := _processor_seconds()) < until:
        target = min(TARGETS, key=lambda target: sums[target]["seconds"])
        of_target = sums[target]
        wrong = _failed(target, first + int(of_target["seeds"]))
        failed += wrong
        of_target["failed"] += wrong
        of_target["seeds"] += 1
        now = _processor_seconds()
        of_target["seconds"] += now - before
        if now - kept >= _BETWEEN_SUMS_SECONDS or now >= until:
            kept = now
            _KEPT.mkdir(parents=True, exist_ok=True)
            beside = file.with_suffix(".new")
            beside.write_text(json.dumps(sums))
            beside.replace(file)
    for target, of_target in sums.items():
        print(target, *(f"{name} {value:.0f}" for name, value in of_target.items()))
    return failed == 0


def main(words: list[str]) -> int:
    if words[0] in TARGETS:
        return int(_failed(words[0], int(words[1])))
    return 0 if _tried_for(float(words[0]), int(words[1]) if len(words) > 1 else 0) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
