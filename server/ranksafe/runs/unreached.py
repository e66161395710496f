"""What a passed rehearsal says nothing about: findings, and functions, on lines that no rank was seen to execute."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from ranksafe.checker.analysis import Analyzer
from ranksafe.checker.configuration import load_configuration
from ranksafe.checker.finding import Level
from ranksafe.checker.registry import Registry
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.runs.compared_ranks.executed_lines import Executed, lines_of_any, unchanged_text
from ranksafe.runs.model import Unreached

_MOST_SHOWN: Final = 5
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.Module | Function


def unreached(
    directory: Path, script: Path, ranks: int | None, *, is_whole: bool
) -> tuple[Unreached, ...]:
    """Findings first, then the functions that a run with less data or fewer steps (not ``is_whole``) did not come to.

    Empty where it is not known what was executed, and for files that were edited since.
    """
    reached = lines_of_any(directory)
    files = {path: file for path in reached if (file := _parsed(path, directory)) is not None}
    if script.resolve() not in files:
        return ()
    found: list[Unreached] = []
    for path, (text, tree) in files.items():
        found += _findings(path, text, tree, reached[path], ranks)
    if not is_whole:
        trees = {path: tree for path, (_, tree) in files.items()}
        found += _functions(trees, reached)
    return tuple(found)


def unreached_in_words(
    found: Sequence[Unreached], steps: int | None, *, is_whole: bool
) -> list[Translated]:
    """One sentence, or none; ``steps``: after how many the run was stopped."""
    if not found:
        return []
    places = ", ".join(each.text for each in found[:_MOST_SHOWN])
    if len(found) > _MOST_SHOWN:
        places += ", …"
    cut = _NOT_REACHED_IN_CUT if steps is None else _NOT_REACHED_IN_STEPS
    sentence = _NOT_REACHED if is_whole else cut
    return [sentence.filled(places=places, steps=steps)]


def _parsed(path: Path, directory: Path) -> tuple[str, ast.Module] | None:
    text = unchanged_text(path, directory)
    try:
        return None if text is None else (text, ast.parse(text))
    except (ValueError, SyntaxError, RecursionError):
        return None


def _findings(
    path: Path, text: str, tree: ast.Module, lines: frozenset[int], ranks: int | None
) -> Iterator[Unreached]:
    configuration = load_configuration(path.parent).configuration
    analysis = Analyzer(Registry.load(), configuration, LaunchContext(gpus=ranks)).open(path, text)
    for finding in analysis.findings:
        line = finding.range.start.line + 1
        own = _lines_around(tree, line)
        if finding.level > Level.INFORMATION and own and lines.isdisjoint(own):
            yield Unreached(str(path), line, finding.code)


def _functions(trees: Mapping[Path, ast.Module], reached: Executed) -> Iterator[Unreached]:
    """Each function that no rank has entered, at the first call of it that was not reached in code that was."""
    left: set[str] = set()
    for path, tree in trees.items():
        left |= {
            node.name
            for node in tree.body
            if isinstance(node, Function) and not _is_entered(node, reached[path])
        }
    for path, tree in trees.items():
        lines = reached[path]
        for scope in ast.walk(tree):
            if isinstance(scope, Scope) and _is_entered(scope, lines):
                for statement in _statements(scope.body):
                    for call in _calls(statement):
                        if call.id in left and lines.isdisjoint(_head(statement)):
                            left.discard(call.id)
                            yield Unreached(str(path), call.lineno, call.id)


def _is_entered(scope: Scope, lines: frozenset[int]) -> bool:
    return any(not lines.isdisjoint(_head(statement)) for statement in _statements(scope.body))


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Every statement of a scope in the order of the text, without those of the scopes within."""
    for statement in body:
        yield statement
        if not isinstance(statement, _DEFINITIONS):
            for child in ast.iter_child_nodes(statement):
                if isinstance(child, ast.stmt):
                    yield from _statements([child])
                elif isinstance(child, ast.ExceptHandler | ast.match_case):
                    yield from _statements(child.body)


def _calls(statement: ast.stmt) -> Iterator[ast.Name]:
    """The names that a statement itself calls, those of the statements below it left out."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func
        waiting += [
            child
            for child in ast.iter_child_nodes(node)
            if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case)
        ]


def _lines_around(tree: ast.Module, line: int) -> range | None:
    """The lines of the innermost statement around a line; None for a definition, which is executed with its file."""
    innermost: ast.stmt | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and line in _head(node):
            innermost = node
    return None if innermost is None or isinstance(innermost, _DEFINITIONS) else _head(innermost)


def _head(statement: ast.stmt) -> range:
    """A statement's lines; of one that holds others those before them."""
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    if not body:
        return range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    first = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
    return range(statement.lineno, max(first.lineno, statement.lineno + 1))


_NOT_REACHED = Translated(
    en="no rank was seen to reach {places}", zh_cn="没有观察到任何 rank 执行到 {places}"
)
_NOT_REACHED_IN_CUT = Translated(
    en="not reached with less data and fewer steps: {places}; --steps 0 rehearses all of it",
    zh_cn="数据和步数缩减后没有执行到：{places}；使用 --steps 0 可完整预演",
)
_NOT_REACHED_IN_STEPS = Translated(
    en="not reached in {steps} steps: {places}; --steps 0 rehearses to the end",
    zh_cn="{steps} 步内没有执行到：{places}；使用 --steps 0 可预演到结束",
)
