"""Where the last lines of two ranks part, after the last collective that both called (``ranksafe_agent.trail``)."""

from __future__ import annotations

import ast
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ranksafe.runs.explain import parted
from ranksafe.runs.explain.collective_order import calls_of
from ranksafe.runs.explain.evidence import entries_of
from ranksafe.source.plain_files import open_plain

RECORD = struct.Struct("<III")
"""As the agent writes it: file, line, 0; or `CALL`, group, number of the call in it."""
CALL = 0xFFFFFFFF
HEAD = struct.Struct("<Q")
_LARGEST = 4_000_000
_MOST_LINES = 2000
"""What led from one collective to the next is not compared where it is longer."""
_MOST_APART = 100
"""Lines that one rank executes on its own, before both are looked for at the same one again."""

Line = tuple[str, int]


Call = tuple[str, int, str]
"""Group, number of the call in it, what was called."""


@dataclass(frozen=True, slots=True)
class Trail:
    """The lines that led to each of the last collectives, and those since, which led to None."""

    parts: tuple[tuple[Call | None, tuple[Line, ...]], ...]
    from_the_beginning: bool = True


def trails_of(directory: Path) -> dict[int, Trail]:
    """By rank; those that cannot be read are left out."""
    found = {}
    for path in directory.glob("rank*.trail"):
        rank = path.stem.removeprefix("rank")
        try:
            with open_plain(path) as file:
                data = file.read(_LARGEST)
            if rank.isdigit():
                found[int(rank)] = _trail(data, path)
        except (OSError, KeyError, TypeError, ValueError, struct.error):
            continue
    return found


def _trail(data: bytes, path: Path) -> Trail:
    journal = entries_of(path.with_suffix(".jsonl"))
    events = [event for event in journal if event.get("number")]
    files = {e["number"]: str(e["file"]) for e in events if e.get("event") == "trail-file"}
    names = [event for event in events if event.get("event") == "collective-name"]
    groups = {e["number"]: str(e["value"]["name"]) for e in names if e["table"] == "group"}
    made = {
        (group.name, number): call.what
        for group, calls in calls_of(path.with_suffix(".collectives"), names).items()
        for number, call in calls.kept.items()
    }
    (written,) = HEAD.unpack_from(data)
    slots = (len(data) - HEAD.size) // RECORD.size
    parts: list[tuple[Call | None, tuple[Line, ...]]] = []
    lines: list[Line] = []
    for index in range(max(0, written - slots), written):
        kind, first, second = RECORD.unpack_from(data, HEAD.size + index % slots * RECORD.size)
        if kind != CALL:
            lines.append((files[kind], first))
        else:
            name = groups[first]
            parts.append(((name, second, made.get((name, second), "")), tuple(lines)))
            lines = []
    return Trail((*parts, (None, tuple(lines))), written <= slots)


def parting_of_trails(
    waiting: parted.Way,
    other: parted.Way,
    trails: Mapping[int, Trail],
    at: tuple[str, int] | None = None,
) -> parted.Parting | None:
    """The line after which the two went different ways, in a function that the waiting rank is still in.

    ``at``: group and number of the first call in which they differ, where it is known.
    """
    one, two = trails.get(waiting.rank), trails.get(other.rank)
    if one is None or two is None:
        return None
    lines = _since_the_last_common(one, two) if at is None else _before_call(one, two, *at)
    scope_of = cache(_scope_of)
    found = None if lines is None else _compared(waiting, other, *lines, scope_of)
    if found is None or not found.is_loop:
        return found
    # They made different numbers of passes: one may have skipped a call before, and been matched with another since.
    earlier = (_compared(waiting, other, *each, scope_of) for each in _common(one, two, at))
    return next((each for each in earlier if each is not None and each.is_exit), found)


def _common(
    one: Trail, other: Trail, at: tuple[str, int] | None
) -> Iterator[tuple[tuple[Line, ...], tuple[Line, ...]]]:
    """What led both to each call that they made alike, the earliest first."""
    theirs = dict(other.parts)
    for call, lines in one.parts[:-1]:
        if call in theirs and (at is None or call is None or call[:2] != at):
            yield lines, theirs[call]


def _compared(
    waiting: parted.Way,
    other: parted.Way,
    one: tuple[Line, ...],
    two: tuple[Line, ...],
    scope_of: Callable[[Line], object],
) -> parted.Parting | None:
    scopes = {scope_of(line) for line in _lines(waiting)}
    ours, theirs = ([line for line in each if scope_of(line) in scopes] for each in (one, two))
    mine = beside = 0
    while mine < len(ours):
        if beside < len(theirs) and ours[mine] == theirs[beside]:
            mine, beside = mine + 1, beside + 1
            continue
        if mine:
            sides = (_Side(waiting, ours[mine:]), _Side(other, theirs[beside:]))
            found = _in_words(ours[mine - 1], *sides)
            if found is not None:
                return found
        again = _meeting(ours[mine:], theirs[beside:])
        if again is None:
            return None
        mine, beside = mine + again[0], beside + again[1]
    return None


def _meeting(ours: Sequence[Line], theirs: Sequence[Line]) -> tuple[int, int] | None:
    """After how many lines of each both are at the same one again, as soon as they can be."""
    for steps in range(1, 2 * _MOST_APART):
        for mine in range(max(0, steps - _MOST_APART), min(steps, len(ours) - 1) + 1):
            if steps - mine < len(theirs) and ours[mine] == theirs[steps - mine]:
                return mine, steps - mine
    return None


def are_together(one: Trail | None, other: Trail | None) -> bool:
    """Whether two ranks were last seen to call the same collective."""
    if one is None or other is None or min(len(one.parts), len(other.parts)) < 2:
        return False
    return one.parts[-2][0] == other.parts[-2][0]


def _before_call(
    one: Trail, other: Trail, group: str, number: int
) -> tuple[tuple[Line, ...], tuple[Line, ...]] | None:
    """What led both to their call with this number; of one that did not make it, what it has executed since."""
    found = []
    for trail in (one, other):
        calls = [call[:2] if call is not None else None for call, _ in trail.parts]
        if (group, number) in calls:
            found.append(trail.parts[calls.index((group, number))][1])
        elif (group, number - 1) in calls:
            found.append(trail.parts[calls.index((group, number - 1)) + 1][1])
    return _short(*found) if len(found) == 2 else None


def _since_the_last_common(
    one: Trail, other: Trail
) -> tuple[tuple[Line, ...], tuple[Line, ...]] | None:
    """What both executed after it; from the beginning where there was none."""
    numbers = {call: number for number, (call, _) in enumerate(other.parts[:-1])}
    for number in reversed(range(len(one.parts) - 1)):
        call = one.parts[number][0]
        if call in numbers:
            return _short(one.parts[number + 1][1], other.parts[numbers[call] + 1][1])
    if one.from_the_beginning and other.from_the_beginning:
        return _short(one.parts[0][1], other.parts[0][1])
    return None


def _short(
    one: tuple[Line, ...], other: tuple[Line, ...]
) -> tuple[tuple[Line, ...], tuple[Line, ...]] | None:
    return None if max(len(one), len(other)) > _MOST_LINES else (one, other)


def _scope_of(line: Line) -> tuple[str, int] | None:
    tree = parted.tree_of(Path(line[0]))
    return None if tree is None else (line[0], getattr(parted.scope_at(tree, line[1]), "lineno", 0))


def _in_words(common: Line, one: _Side, other: _Side) -> parted.Parting | None:
    """Whether what follows the last ``common`` line decides where the ranks are now, and how."""
    sides = ((one, other), (other, one))
    for side, beside in sides:
        if side.lines and _is_handler(side.lines[0]):
            filename, line = side.lines[0]
            return parted.told(parted.HANDLER, filename, _ranks(side, beside), line)
    filename, line = common
    tree = parted.tree_of(Path(filename))
    nodes = [] if tree is None else list(parted.own_nodes(parted.scope_at(tree, line)))
    head = next((each for each in nodes if getattr(each, "lineno", 0) == line), None)
    if not isinstance(head, ast.If | ast.For | ast.AsyncFor | ast.While):
        return None
    for side, beside in reversed(sides):
        exit_ = side.exit_in(head, nodes, filename) if isinstance(head, ast.If) else None
        if exit_ is not None:
            word, ranks = parted.WORDS[type(exit_)], _ranks(beside, side)
            return parted.told(parted.EXIT_UNDER, filename, ranks, exit_.lineno, line, word=word)
    for side, beside in sides:
        if side.is_in(head.body, filename):
            words = parted.ENTERED if isinstance(head, ast.If) else parted.LOOP
            return parted.told(words, filename, _ranks(side, beside), line)
        if isinstance(head, ast.If) and side.is_in(head.orelse, filename):
            return parted.told(parted.ENTERED, filename, _ranks(beside, side), line)
    return None


@dataclass(frozen=True, slots=True)
class _Side:
    """A rank, and its lines after the last common one."""

    way: parted.Way
    lines: Sequence[Line]

    def exit_in(self, head: ast.If, nodes: Sequence[ast.AST], filename: str) -> ast.stmt | None:
        """The statement of a branch by which the rank left the loop or the function."""
        exits = {each.lineno: each for each in nodes if isinstance(each, parted.EXITS)}
        for file, line in self.lines:
            if file != filename or not head.lineno < line <= (head.end_lineno or 0):
                return None
            if line in exits:
                return exits[line]
        return None

    def is_in(self, block: Sequence[ast.stmt], filename: str) -> bool:
        """Whether the rank has gone into a block and is there now."""
        if not block or not self.lines or self.lines[0][0] != filename:
            return False
        rows = parted.lines_of(block)
        return self.lines[0][1] in rows and any(
            file == filename and line in rows for file, line in _lines(self.way)
        )


def _lines(way: parted.Way) -> list[Line]:
    return [(str(Path(frame.filename).resolve()), frame.line) for frame in way.frames]


def _is_handler(line: Line) -> bool:
    tree = parted.tree_of(Path(line[0]))
    return tree is not None and any(
        isinstance(node, ast.ExceptHandler) and node.lineno == line[1] for node in ast.walk(tree)
    )


def _ranks(one: _Side, other: _Side) -> tuple[int, int]:
    return one.way.rank, other.way.rank
