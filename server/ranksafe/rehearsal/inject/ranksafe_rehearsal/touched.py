"""Which refusals and stand-ins a failure touches: through the lines its values come from, and the objects it holds.

The slice through the script's own lines (``dependence``) begins at the expression that failed and follows parameters
to the callers. An entry is touched where one of those lines met it, where an object on the way is one that we made, or
where a line that met it names the same file or object.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from types import FrameType, FunctionType, ModuleType, TracebackType
from typing import Any, NamedTuple

from . import dependence, lookups, provenance
from .provenance import Entry, Place

_SECONDS = 2.0
"""In all; whoever waits for a failure waits for this too."""
_MOST_VISITED = 4000
_DEEPEST = 4
_MOST_ITEMS = 40
_MOST_FRAMES = 200
_MOST_TOLD = 20
_SHORT_EPOCH = "short-epoch"
_MOST_FILES = 2000
_NUMBER = re.compile(r"\d+")
_PLAIN = (str, bytes, int, float, bool, complex, type, type(None), ModuleType, FunctionType)


class Step(NamedTuple):
    """One frame of a traceback or of a stack; ``columns``: UTF-8 bytes from 0, None before Python 3.11."""

    frame: FrameType
    line: int
    columns: tuple[int, int] | None


def touched_by(
    error: BaseException | None, ends_at: FrameType | None = None
) -> list[dict[str, Any]]:
    """The entries that ``error`` touches, as data: each with ``how``.

    ``ends_at``: the program ends here of its own will, while ``error``, if any, is being handled.
    """
    if not provenance.entries():
        return []
    search = _Search()
    running: list[Step] = []
    is_lacking = False
    if ends_at is not None:
        running = _stack(ends_at)
        search.follow(running)
    for origin in chain(error):
        steps = list(_steps(origin.__traceback__))
        if origin is not error or ends_at is not None:
            search.lines(
                {Place(step.frame.f_code.co_filename, step.line) for step in steps}, "chain"
            )
        running = [*running, *steps]
        search.follow(steps)
        if origin is error and ends_at is None:
            frames = [(step.frame, step.line) for step in steps]
            is_lacking = lookups.is_lacking_in_truth(origin, frames)
        if isinstance(origin, FileNotFoundError) and _has_another_number(origin.filename):
            search.kind(_SHORT_EPOCH, "number")
    return [
        dict(provenance.as_data(entry), how=how)
        for entry, how in search.found()
        if not (is_lacking and entry.kind not in provenance.REFUSALS)
        and (entry.kind != _SHORT_EPOCH or not _goes_on(entry, running))
    ]


def _goes_on(entry: Entry, running: list[Step]) -> bool:
    """Whether the loop that met the entry is still under way: how many batches there are changes none of them."""
    for step in running:
        file = step.frame.f_code.co_filename
        for place in entry.places:
            if place.file != file:
                continue
            source = dependence.source_of(file)
            if step.line in (source.loop_at(place.line) if source else [place.line]):
                return True
    return False


class _Search:
    def __init__(self) -> None:
        self._found: dict[int, tuple[Entry, str]] = {}
        self._end = time.monotonic() + _SECONDS
        self._visited: set[int] = set()

    def found(self) -> list[tuple[Entry, str]]:
        """What the failure touches, in the order in which the script met it, without refusals at lines that got a
        stand-in then."""
        found = [self._found[number] for number in sorted(self._found)]
        answered = {entry.places for entry, _ in found if entry.kind not in provenance.REFUSALS}
        return [
            (entry, how)
            for entry, how in found
            if entry.kind not in provenance.REFUSALS or entry.places not in answered
        ][-_MOST_TOLD:]

    def add(self, entry: Entry | None, how: str) -> None:
        if entry is not None:
            self._found.setdefault(entry.number, (entry, how))

    def kind(self, kind: str, how: str) -> None:
        """All entries of one kind."""
        for entry in provenance.entries():
            if entry.kind == kind:
                self.add(entry, how)

    def lines(self, places: set[Place], how: str) -> None:
        """Entries that one of these lines met."""
        for entry in provenance.entries():
            if not places.isdisjoint(entry.places):
                self.add(entry, how)

    def follow(self, steps: list[Step]) -> None:
        """From the user's innermost frame outwards, as long as what failed was handed in."""
        own = [number for number, step in enumerate(steps) if _is_users(step)]
        if not own:
            for step in steps:
                self.values(step.frame.f_locals.values())
            return
        wanted: set[str] | None = _names_of(steps[own[-1]])
        for inner, outer in zip(reversed(own), [*reversed(own[:-1]), -1]):
            if time.monotonic() > self._end:
                return
            handed = self._frame(steps[inner], wanted)
            if not handed or outer < 0:
                return
            if inner - outer > 1:  # a library called it, with what it had
                for step in steps[outer + 1 : inner]:
                    self.values(step.frame.f_locals.values())
                wanted = _names_of(steps[outer])
            else:
                wanted = _handed_over(steps[outer], steps[inner], handed)

    def _frame(self, step: Step, wanted: set[str] | None) -> set[str]:
        """Look at what comes into an expression of the user's; the parameters that it comes from."""
        file = step.frame.f_code.co_filename
        source = dependence.source_of(file)
        local, shared = step.frame.f_locals, step.frame.f_globals
        if source is None:
            self.values(local.values())
            self.lines({Place(file, step.line)}, "line")
            return set(local)
        reached = source.slice(step.line, wanted)
        self.lines({Place(file, line) for line in reached.lines}, "line")
        self._same_object(source, file, reached.names, {**shared, **local})
        for name in reached.names:
            if name.startswith("self."):
                holder = getattr(local.get("self"), "__dict__", {})
                self.values([holder.get(name[5:])])
            else:
                self.values([local[name] if name in local else shared.get(name)])
        return reached.parameters

    def _same_object(
        self, source: dependence.Source, file: str, names: set[str], values: dict[str, Any]
    ) -> None:
        """Refused lines that name a file or object which the failure comes from: they were to make or change it."""
        telling = {
            name for name in names if name[:1] in "'\"" or not isinstance(values.get(name), _PLAIN)
        }
        telling |= {name for name in names if isinstance(values.get(name), str)}
        telling -= {name for name in telling if name not in values and name.isidentifier()}
        for entry in provenance.entries():
            if time.monotonic() > self._end:
                return
            if entry.kind not in provenance.REFUSALS:
                continue
            for place in entry.places:
                if place.file == file and any(
                    not telling.isdisjoint(each.reads)
                    for each in source.scope_of(place.line).at(place.line)[:1]
                ):
                    self.add(entry, "same")

    def values(self, values: Iterable[Any]) -> None:
        """Look for objects that we made, a few attributes and elements deep."""
        work = [(value, 0) for value in values]
        while work and len(self._visited) < _MOST_VISITED and time.monotonic() < self._end:
            value, depth = work.pop()
            if isinstance(value, _PLAIN) or id(value) in self._visited:
                continue
            self._visited.add(id(value))
            self.add(provenance.of(value), "value")
            if depth < _DEEPEST:
                work.extend((part, depth + 1) for part in _parts(value))


def _has_another_number(filename: Any) -> bool:
    """Whether this run wrote a file of that name but for its numbers: a checkpoint of another step, say."""
    if not isinstance(filename, str):
        return False
    folder, name = os.path.split(os.path.abspath(filename))
    while not os.path.isdir(folder):
        folder, name = os.path.split(folder)
    pattern = _NUMBER.sub("#", name)
    try:
        with os.scandir(folder) as found:
            return "#" in pattern and any(
                _NUMBER.sub("#", each.name) == pattern and each.stat().st_mtime >= provenance.BEGUN
                for each, _ in zip(found, range(_MOST_FILES))
            )
    except OSError:
        return False


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from list(value.values())[:_MOST_ITEMS]
    elif isinstance(value, (list, tuple)):
        yield from value[:_MOST_ITEMS]
    else:
        # Not getattr: a property of the user's could do anything.
        held = getattr(value, "__dict__", None)
        if isinstance(held, dict):
            yield from list(held.values())[:_MOST_ITEMS]


def _steps(trace: TracebackType | None) -> Iterator[Step]:
    for _ in range(_MOST_FRAMES):
        if trace is None:
            return
        yield Step(trace.tb_frame, trace.tb_lineno or 0, _columns(trace.tb_frame, trace.tb_lasti))
        trace = trace.tb_next


def _stack(innermost: FrameType) -> list[Step]:
    """The callers of a frame and the frame itself, outermost first."""
    found: list[Step] = []
    frame: FrameType | None = innermost
    while frame is not None and len(found) < _MOST_FRAMES:
        found.append(Step(frame, frame.f_lineno or 0, _columns(frame, frame.f_lasti)))
        frame = frame.f_back
    return found[::-1]


def _columns(frame: FrameType, instruction: int) -> tuple[int, int] | None:
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is None or instruction < 0:
        return None
    for index, (line, end_line, start, end) in enumerate(positions()):
        if index == instruction // 2:
            whole = line == end_line and start is not None and end is not None
            return (start, end) if whole else None
    return None


def _names_of(step: Step) -> set[str] | None:
    """What the expression that was being computed reads; None: the whole line counts."""
    source = dependence.source_of(step.frame.f_code.co_filename)
    if source is None or step.columns is None:
        return None
    return dependence.read_between(source, step.line, step.columns) or None


def _handed_over(outer: Step, inner: Step, parameters: set[str]) -> set[str] | None:
    """The names that the caller's arguments for ``parameters`` read; None: the whole line counts."""
    code = inner.frame.f_code
    names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    function = code.co_name
    if names[:1] in (["self"], ["cls"]):
        names = names[1:]
        parameters = parameters - {"self", "cls"}
        function = (
            outer_name if (outer_name := _class_of(inner)) and function == "__init__" else function
        )
    source = dependence.source_of(outer.frame.f_code.co_filename)
    given = None if source is None else dependence.arguments_of(source, outer.line, function)
    if given is None or not parameters.issubset(names):
        return _names_of(outer)
    wanted: set[str] = set()
    for name in parameters:
        wanted |= given.get(name) or given.get(names.index(name)) or set()
    return wanted


def _class_of(step: Step) -> str:
    return type(step.frame.f_locals.get("self")).__name__


def _is_users(step: Step) -> bool:
    return provenance.is_user_file(step.frame.f_code.co_filename)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """``error``, then what it came from, handled or not."""
    seen: set[int] = set()
    current = error
    while current is not None and id(current) not in seen and len(seen) < 10:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__
