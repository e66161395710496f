"""Rehearses pairs of the rank bench as a user would, and says what was seen, where and by which rule.

    PYTHONPATH=. RANKSAFE_TEST_TORCH_PYTHON=… python tests/rehearsal/measurements/rank_bench_pairs.py --sample 20 --seed 1

Both twins of a pair run with ``ranksafe rehearse`` and default options, one after the other; ``--steps N`` goes through.
A failure is *named* when the incorrect program ends as failed, by itself or silently. Its place is the header's *line*,
else the *branch*, loop or handler around that line, else a line of the *chain* of calls that led there. ``--json FILE``
keeps every outcome and is continued by a later call.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.rank_bench.header import Pair, Program, read_pairs

_ALARMS = ("failed", "silent-failure")
_CODES = re.compile(r"\bRS4\d\d\b")
_LINES = re.compile(r"\bline (\d+)|(\w+\.py):(\d+)")
_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Try)
_LONGEST_SECONDS = 400


def rehearsed(program: Program, python: Path, steps: str | None) -> dict[str, Any]:
    """What ``ranksafe rehearse --output-format json`` says of a program, with the seconds it took."""
    command = [sys.executable, "-m", "ranksafe", "rehearse", str(program.path)]
    command += ["--gpus", str(program.ranks), "--python", str(python)]
    command += ["--output-format", "json", "--timeout", str(_LONGEST_SECONDS), "--yes"]
    command += [] if steps is None else ["--steps", steps]
    began = time.monotonic()
    # In a folder of its own, as a program may look for the files of an earlier run.
    with tempfile.TemporaryDirectory(prefix="ranksafe-rank-bench-") as folder:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
    try:
        result: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        result = {"outcome": f"status {done.returncode}", "failures": [], "limits": []}
        result["said"] = done.stderr[-2000:]
    result["wall_seconds"] = round(time.monotonic() - began, 1)
    return result


def scored(
    pair: Pair, incorrect: Mapping[str, Any], corrected: Mapping[str, Any]
) -> dict[str, Any]:
    """One row of the table, and the words it was made from."""
    failures = incorrect["failures"]
    codes = {each["code"] for each in failures if each["code"]}
    codes |= {code for each in failures for code in _CODES.findall(each["explanation"])}
    named = incorrect["outcome"] in _ALARMS
    return {
        "outcome": incorrect["outcome"],
        "named": named,
        "place": place_of(pair.incorrect, failures) if named else None,
        "codes": sorted(codes),
        "rule": pair.incorrect.expect in codes,
        "twin": corrected["outcome"],
        "false_alarm": corrected["outcome"] in _ALARMS,
        "seconds": incorrect["wall_seconds"],
        "twin_seconds": corrected["wall_seconds"],
        "said": [_in_words(each) for each in failures] or incorrect.get("said", ""),
        "twin_said": [_in_words(each) for each in corrected["failures"]]
        or corrected.get("said", ""),
        "limit": (incorrect.get("simulation_limit") or {}).get("message"),
        "twin_limit": (corrected.get("simulation_limit") or {}).get("message"),
    }


def place_of(program: Program, failures: list[dict[str, Any]]) -> str | None:
    """``line``, ``branch``, ``chain`` or None: how near the failures come to the header's line."""
    assert program.file is not None
    assert program.row is not None
    exact = {(each["filename"], (each["location"] or {}).get("row")) for each in failures}
    said = {row for each in failures for row in _named_lines(each["message"], program.file.name)}
    shown = {row for filename, row in exact if filename == str(program.file)} | said
    statement = _statement(program)
    if not shown.isdisjoint(statement):
        return "line"
    if not shown.isdisjoint(_around(program)):
        return "branch"
    chain = {
        frame["location"]["row"]
        for each in failures
        for frame in each["frames"]
        if frame["filename"] == str(program.file) and frame["location"]
    }
    return "chain" if not chain.isdisjoint({*statement, *_around(program)}) else None


def _named_lines(message: str, filename: str) -> Iterator[int]:
    for alone, file, row in _LINES.findall(message):
        if alone or file == filename:
            yield int(alone or row)


def _statement(program: Program) -> range:
    """The lines of the header's statement; of one that holds others, those of its head."""
    assert program.row is not None
    best = range(program.row, program.row + 1)
    for node in ast.walk(_tree(program)):
        if isinstance(node, ast.stmt) and node.lineno <= program.row <= (node.end_lineno or 0):
            body = getattr(node, "body", None)
            end = body[0].lineno if body else (node.end_lineno or node.lineno) + 1
            if node.lineno <= program.row < end:
                best = range(node.lineno, end)
    return best


def _around(program: Program) -> set[int]:
    """The head of the innermost branch, loop or handler around the header's line, and the arms that it opens."""
    assert program.row is not None
    inner: ast.AST | None = None
    for node in ast.walk(_tree(program)):
        if isinstance(node, _BLOCKS) and node.lineno <= program.row <= (node.end_lineno or 0):
            inner = node
    if inner is None:
        return set()
    assert isinstance(inner, _BLOCKS)
    return {inner.lineno}


def _tree(program: Program) -> ast.Module:
    assert program.file is not None
    return ast.parse(program.file.read_text(encoding="utf-8"))


def _in_words(failure: Mapping[str, Any]) -> str:
    row = (failure["location"] or {}).get("row")
    return f"{failure['kind']} {failure['code']} line {row}: {failure['message'][:400]}"


def chosen(sample: int | None, seed: int) -> list[Pair]:
    """All pairs, or so many of them in an order that depends on the seed alone."""
    pairs = read_pairs()
    random.Random(seed).shuffle(pairs)
    return pairs if sample is None else pairs[:sample]


def summary(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The table and its totals, as markdown."""
    yield "| pair | outcome | place | codes | twin | seconds |"
    yield "|---|---|---|---|---|---|"
    for name, row in rows.items():
        codes = " ".join(row["codes"]) + ("" if row["rule"] or not row["codes"] else " (other)")
        seconds = f"{row['seconds']} / {row['twin_seconds']}"
        yield f"| {name} | {row['outcome']} | {row['place']} | {codes} | {row['twin']} | {seconds} |"
    count = len(rows)
    places = [row["place"] for row in rows.values()]
    yield ""
    yield (
        f"{count} pairs: {sum(row['named'] for row in rows.values())} named; place: {places.count('line')} line, "
        f"{places.count('branch')} branch, {places.count('chain')} chain; the header's rule: "
        f"{sum(row['rule'] for row in rows.values())}, any rule: {sum(bool(row['codes']) for row in rows.values())}; "
        f"twins: {sum(row['false_alarm'] for row in rows.values())} false alarms, "
        f"{sum(row['twin'] == 'succeeded' for row in rows.values())} passed"
    )


def main(words: list[str]) -> int:
    """Measure and print; 0 when no twin raised an alarm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="pairs by name, in place of a sample")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args(words)
    python = Path(os.environ["RANKSAFE_TEST_TORCH_PYTHON"])
    pairs = (
        [pair for pair in read_pairs() if pair.name in arguments.names]
        if arguments.names
        else chosen(arguments.sample, arguments.seed)
    )
    kept: dict[str, dict[str, Any]] = {}
    if arguments.json and arguments.json.exists():
        kept = json.loads(arguments.json.read_text(encoding="utf-8"))
    for pair in pairs:
        if pair.name not in kept:
            incorrect, corrected = (
                rehearsed(program, python, arguments.steps)
                for program in (pair.incorrect, pair.corrected)
            )
            kept[pair.name] = scored(pair, incorrect, corrected)
            print(pair.name, json.dumps(kept[pair.name])[:600], file=sys.stderr, flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(kept, indent=1), encoding="utf-8")
    rows = {pair.name: kept[pair.name] for pair in pairs}
    print("\n".join(summary(rows)))
    return 1 if any(row["false_alarm"] for row in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
