"""One broken statement costs the findings in it and no other.

The comparison is independent of how the analysis recovers: the same text with the statement replaced by ``pass``.
"""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest
from ranksafe.checker.finding import Finding

from tests.checker.incremental import noisy_analyzer, parses
from tests.checker.real_files import real_files

BREAKS_PER_FILE = 12


def statements(text: str) -> list[ast.stmt]:
    """Statements that can be broken and blanked alone: on lines of their own."""
    tree = ast.parse(text)
    lines = text.split("\n")
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        and not lines[node.lineno - 1][: node.col_offset].strip()
        and not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Match))
    ]


def header_end(statement: ast.stmt) -> int:
    """Last line (0-based) of the statement itself: of a block's header, or of a simple statement."""
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body:
        return max(statement.lineno, min(item.lineno for item in body) - 1) - 1
    return (statement.end_lineno or statement.lineno) - 1


def broken(text: str, statement: ast.stmt, rng: random.Random) -> tuple[str, int] | None:
    """The text with one line of the statement cut short or robbed of a character, and that line."""
    lines = text.split("\n")
    number = rng.randint(statement.lineno - 1, header_end(statement))
    line = lines[number]
    start = len(line) - len(line.lstrip())
    if len(line) <= start + 1:
        return None
    cut = rng.randrange(start + 1, len(line))
    lines[number] = rng.choice(
        [line[:cut], line[:cut] + line[cut + 1 :], line[:cut] + "(" + line[cut:]]
    )
    changed = "\n".join(lines)
    return None if parses(changed) else (changed, number)


def blanked(text: str, statement: ast.stmt) -> str:
    """The text with a simple statement replaced by ``pass``, a block's header by ``if 1:``, line for line."""
    lines = text.split("\n")
    first, last = statement.lineno - 1, header_end(statement)
    has_body = isinstance(getattr(statement, "body", None), list)
    lines[first] = " " * statement.col_offset + ("if 1:" if has_body else "pass")
    lines[first + 1 : last + 1] = [""] * (last - first)
    return "\n".join(lines)


def outside(findings: tuple[Finding, ...], statement: ast.stmt) -> list[tuple[int, int, str, str]]:
    first, last = statement.lineno - 1, header_end(statement)
    return [
        (item.range.start.line, item.range.start.column, item.code, item.message.en)
        for item in findings
        if not first <= item.range.start.line <= last
    ]


def survivors(path: Path, breaks: int) -> tuple[int, int]:
    """How many of the breaks were made, and after how many of these every other finding was the same."""
    rng = random.Random(path.name)
    text = path.read_text("utf-8")
    analyzer = noisy_analyzer()
    candidates = statements(text)
    made = intact = 0
    for _ in range(breaks * 4):
        if made == breaks:
            break
        statement = rng.choice(candidates)
        change = broken(text, statement, rng)
        without = blanked(text, statement)
        if change is None or not parses(without):
            continue
        made += 1
        analysis = analyzer.open(path, text)
        analysis.change(change[0], change[1], change[1])
        expected = analyzer.open(path, without).findings
        intact += outside(analysis.findings, statement) == outside(expected, statement)
    return made, intact


@pytest.mark.long
def test_other_statements_keep_their_findings() -> None:
    made = intact = 0
    for path in real_files(30):
        done, kept = survivors(path, BREAKS_PER_FILE)
        made += done
        intact += kept
    print(f"{intact} of {made} broken statements cost no other finding")
    assert made >= 200
    assert intact >= 0.95 * made
