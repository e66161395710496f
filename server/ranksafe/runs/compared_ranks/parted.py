"""Where the ways of two ranks parted, one of which waits in vain: the branch, the handler, the early exit or the loop.

Known from the stack of the rank that waits and the lines that both have executed, in the whole run or since they last
were together: what stands around its line, or before it, that one of them has entered and the other has not. Only what
decides over that line counts, and where a rank has been in both arms of a branch, the lines do not tell: then this is
silent.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.runs.compared_ranks.executed_lines import Executed
from ranksafe.runs.model import Frame

_LARGEST_FILE = 2_000_000
_MOST_LOOPS = 2
Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
Loop = ast.For | ast.AsyncFor | ast.While
_EXITS = (ast.Break, ast.Continue, ast.Return, ast.Raise)
_WORDS = {ast.Break: "break", ast.Continue: "continue", ast.Return: "return", ast.Raise: "raise"}


@dataclass(frozen=True, slots=True)
class Way:
    """What is known of one rank."""

    rank: int
    executed: Executed
    frames: tuple[Frame, ...] = ()
    """Of the user's code, where it waits, or where it is; empty: not known."""


@dataclass(frozen=True, slots=True)
class Parting:
    """A place where two ranks parted, in words, and its lines, the telling one first."""

    text: Translated
    filename: str
    lines: tuple[int, ...]
    is_exit: bool = False
    """By an early exit or a handler: what follows need not show at once."""
    is_loop: bool = False
    """Only in the number of passes, whatever made them differ."""


def parting_of(waiting: Way, other: Way) -> Parting | None:
    """Why ``other`` does not come to where ``waiting`` is; None where the lines do not tell."""
    return decided_by(waiting, other) or in_loops(waiting, other)


def decided_by(waiting: Way, other: Way) -> Parting | None:
    """The branch, handler or exit that only one of them took."""
    found = (
        place.left_by() or place.around() or place.caught() for place in _places(waiting, other)
    )
    return next((each for each in found if each is not None), None)


def _places(waiting: Way, other: Way) -> list[_Place]:
    places = (_Place.of(frame, waiting, other) for frame in waiting.frames)
    return [place for place in places if place is not None]


@dataclass(frozen=True, slots=True)
class _Place:
    """One line of the waiting rank's stack in its function, and what both have executed of the file."""

    filename: str
    line: int
    scope: Scope
    ours: frozenset[int]
    theirs: frozenset[int]
    ranks: tuple[int, int]

    @classmethod
    def of(cls, frame: Frame, waiting: Way, other: Way) -> _Place | None:
        path = Path(frame.filename).resolve()
        ours, theirs = waiting.executed.get(path), other.executed.get(path)
        tree = tree_of(path)
        if ours is None or theirs is None or tree is None or frame.line not in ours:
            return None
        scope = scope_at(tree, frame.line)
        ranks = (waiting.rank, other.rank)
        return cls(frame.filename, frame.line, scope, ours, theirs, ranks)

    def around(self) -> Parting | None:
        """A branch or handler around the line that the other has come to and not entered, the outermost."""
        for head, line, block in _blocks_at(self.scope, self.line):
            inside = _lines_of(block)
            if self.theirs.isdisjoint(inside) and not self.theirs.isdisjoint(_head(head)):
                words = _LOOP if isinstance(head, Loop) else _ENTERED
                words = _HANDLER if isinstance(head, ast.Try) else words
                return _told(words, self.filename, self.ranks, line)
        return None

    def left_by(self) -> Parting | None:
        """A statement by which only the other left the function, the loop or the pass before it came to the line."""
        for exit_ in _own_nodes(self.scope):
            if not isinstance(exit_, _EXITS) or exit_.lineno not in self.theirs - self.ours:
                continue
            if _skips(exit_, self.scope, self.line):
                around = _blocks_at(self.scope, exit_.lineno)
                conditions = [line for head, line, _ in around if not isinstance(head, Loop)]
                lines = (exit_.lineno, *conditions[-1:])
                text = _EXIT_UNDER if conditions else _EXIT
                return _told(text, self.filename, self.ranks, *lines, word=_WORDS[type(exit_)])
        return None

    def caught(self) -> Parting | None:
        """An exception handler that only the other has entered, of a statement that both came to."""
        for node in _own_nodes(self.scope):
            if not isinstance(node, ast.Try) or self.ours.isdisjoint(_lines_of(node.body)):
                continue
            common = set(_loops_at(self.scope, node.lineno)) & set(self.loops())
            if node.lineno > self.line and not common:
                continue
            for handler in node.handlers:
                inside = _lines_of(handler.body)
                if self.ours.isdisjoint(inside) and not self.theirs.isdisjoint(inside):
                    ranks = (self.ranks[1], self.ranks[0])
                    return _told(_HANDLER, self.filename, ranks, handler.lineno)
        return None

    def loops(self) -> list[Loop]:
        """The loops around the line, the innermost first."""
        return _loops_at(self.scope, self.line)[::-1]


def _told(
    text: Translated, filename: str, ranks: tuple[int, int], *lines: int, word: str = ""
) -> Parting:
    """A parting of two ranks at a line, in words that may name another line and a keyword, too."""
    places = [f"{Path(filename).name}:{line}" for line in lines]
    values: dict[str, object] = {"rank": ranks[0], "peer": ranks[1], "word": word}
    words = text.filled(place=places[0], outer=places[-1], **values)
    return Parting(words, filename, lines, text in (_HANDLER, _EXIT_UNDER), text is _LOOP)


def in_loops(waiting: Way, other: Way) -> Parting | None:
    """The loops that the waiting rank is in and the other is not, the innermost first.

    Where it is not known where the other is, it has ended or gone on: then all loops are named, for it may be any.
    """
    found = [
        (place, loop.lineno)
        for place in reversed(_places(waiting, other))
        for loop in place.loops()
        if not _is_in(other, place, loop.body)
    ]
    if not found:
        return None
    place = found[0][0]
    of_file = tuple(row for each, row in found if each.filename == place.filename)[:_MOST_LOOPS]
    words = _LOOP if len(of_file) == 1 else _LOOPS_AROUND
    return _told(words, place.filename, place.ranks, *of_file)


def _is_in(other: Way, place: _Place, block: Sequence[ast.stmt]) -> bool:
    path = Path(place.filename).resolve()
    return any(
        Path(frame.filename).resolve() == path and covers(block, frame.line)
        for frame in other.frames
    )


def tree_of(path: Path) -> ast.Module | None:
    """The tree of a file; None where it cannot be read or parsed."""
    try:
        stamp = path.stat()
        if stamp.st_size > _LARGEST_FILE:
            return None
        return _parsed(path, stamp.st_mtime_ns)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


@lru_cache(maxsize=16)
def _parsed(path: Path, _changed: int) -> ast.Module:
    return ast.parse(path.read_bytes())


def scope_at(tree: ast.Module, line: int) -> Scope:
    """The innermost function around a line, else the file."""
    found: Scope = tree
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and covers(node.body, line):
            found = node
    return found


def _own_nodes(scope: Scope) -> Iterator[ast.AST]:
    """Everything in a scope but what is in functions and classes within, outer nodes before inner ones."""
    waiting: list[ast.AST] = list(scope.body)
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, _SCOPES):
            waiting += ast.iter_child_nodes(node)


def _blocks_at(scope: Scope, line: int) -> Iterator[tuple[ast.stmt, int, list[ast.stmt]]]:
    """The arms of branches, bodies of loops and handlers around a line, the outermost first.

    Before each the statement that it is a part of, and the line that leads into it.
    """
    for node in _own_nodes(scope):
        blocks: list[tuple[int, list[ast.stmt]]] = []
        if isinstance(node, ast.If):
            blocks = [(node.lineno, node.body), (node.lineno, node.orelse)]
        elif isinstance(node, Loop):
            blocks = [(node.lineno, node.body)]
        elif isinstance(node, ast.Try):
            blocks = [(handler.lineno, handler.body) for handler in node.handlers]
        for first, block in blocks:
            if covers(block, line):
                assert isinstance(node, ast.stmt)
                yield node, first, block


def _loops_at(scope: Scope, line: int) -> list[Loop]:
    """The loops around a line, the outermost first."""
    return [head for head, _, _ in _blocks_at(scope, line) if isinstance(head, Loop)]


def _skips(exit_: ast.stmt, scope: Scope, line: int) -> bool:
    """Whether who leaves by a statement does not come to a line of the same function, or no more."""
    left = _loops_at(scope, exit_.lineno)[-1:]
    within = bool(left) and left[0] in _loops_at(scope, line)
    if isinstance(exit_, ast.Break):
        return within
    if isinstance(exit_, ast.Continue):
        return within and exit_.lineno < line
    return within or exit_.lineno < line


def _lines_of(block: Sequence[ast.stmt]) -> range:
    """The lines of statements that follow each other."""
    return range(block[0].lineno, (block[-1].end_lineno or block[-1].lineno) + 1)


def _head(statement: ast.stmt) -> range:
    """The lines of a statement before those it holds."""
    body: list[ast.stmt] = getattr(statement, "body", None) or []
    if isinstance(statement, ast.Try):
        return _lines_of(body)
    end = body[0].lineno if body else statement.lineno + 1
    return range(statement.lineno, max(end, statement.lineno + 1))


def covers(block: Sequence[ast.stmt], line: int) -> bool:
    """Whether a line is in one of the statements."""
    return any(each.lineno <= line <= (each.end_lineno or each.lineno) for each in block)


_ENTERED = Translated(
    en="rank {rank} took the branch at {place}, rank {peer} did not",
    zh_cn="rank {rank} 进入了 {place} 的分支，而 rank {peer} 没有",
)
_HANDLER = Translated(
    en="rank {rank} handled an exception at {place}, rank {peer} did not",
    zh_cn="rank {rank} 在 {place} 处理了异常，而 rank {peer} 没有",
)
_EXIT = Translated(
    en="rank {peer} left by `{word}` at {place}, rank {rank} did not",
    zh_cn="rank {peer} 在 {place} 通过 `{word}` 离开，而 rank {rank} 没有",
)
_EXIT_UNDER = Translated(
    en="rank {peer} left by `{word}` at {place} (under the condition at {outer}), rank {rank} did not",
    zh_cn="rank {peer} 在 {place} 通过 `{word}` 离开（条件位于 {outer}），而 rank {rank} 没有",
)
_LOOP = Translated(
    en="rank {rank} is in a pass of the loop at {place} that rank {peer} does not make",
    zh_cn="rank {rank} 正在执行 {place} 的循环中的一轮，而 rank {peer} 没有这一轮",
)
_LOOPS_AROUND = Translated(
    en="rank {rank} is in a pass of the loop at {place}, or of the one around it at {outer}, that rank {peer} does not "
    "make",
    zh_cn="rank {rank} 正在执行 {place} 的循环（或其外层 {outer} 的循环）中的一轮，而 rank {peer} 没有这一轮",
)
