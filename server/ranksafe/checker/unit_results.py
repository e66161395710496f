"""Findings kept with the units they were found in, what each of them read, and the lines they stand on by now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from ranksafe.checker.finding import Finding
from ranksafe.semantics.module import Module, ReadKey
from ranksafe.semantics.units import ClassUnit, Unit
from ranksafe.source.position import Position, Range

Task = Literal["rules", "classes"]
TASKS: Final[tuple[Task, ...]] = ("rules", "classes")


@dataclass(slots=True)
class _Result:
    """Findings of one task on one unit, as they stood when it was checked."""

    findings: list[Finding]
    reads: frozenset[ReadKey]
    start: int
    """The unit's first line then."""
    anchors: list[tuple[Unit, int]]
    """For each finding its unit with that unit's first line then, followed by those of its related places in this
    file; empty where all findings lie in the unit itself and none has related places."""


_NOTHING = _Result([], frozenset(), 0, [])


class UnitResults:
    """Who has read what, over all units of one file; the results themselves lie in the units."""

    def __init__(self) -> None:
        self._readers: dict[ReadKey, set[Unit]] = defaultdict(set)

    def read(self, key: ReadKey) -> bool:
        """Whether some result depends on ``key``."""
        return bool(self._readers.get(key))

    def store(
        self, module: Module, unit: Unit, task: Task, found: list[Finding], reads: set[ReadKey]
    ) -> None:
        """Keep what ``task`` found in ``unit`` and what it read for that."""
        anchors = []
        if found and (isinstance(unit, ClassUnit) or any(finding.related for finding in found)):
            units: list[Unit] = []
            for finding in found:
                own = [item.range for item in finding.related if item.path is None]
                for place in (finding.range, *own):
                    holder = unit
                    if isinstance(unit, ClassUnit) or not _stands_in(unit, place.start.line):
                        units = units or list(module.all_units())
                        holder = _holding(units, place.start.line) or unit
                    anchors.append((holder, holder.start))
        unit.results[task] = _Result(found, frozenset(reads), unit.start, anchors)
        for key in reads:
            self._readers[key].add(unit)

    @staticmethod
    def store_nothing(unit: Unit, task: Task) -> None:
        """``task`` has nothing to say of ``unit``, whatever the rest of the file says."""
        unit.results[task] = _NOTHING

    def forget(self, unit: Unit) -> None:
        """Drop the unit's results."""
        for task in TASKS:
            result: _Result | None = unit.results.pop(task, None)
            if result is not None:
                for key in result.reads:
                    self._readers[key].discard(unit)

    def invalidate(self, affected: set[ReadKey]) -> None:
        """Drop every result that read something in ``affected``."""
        for key in affected:
            for unit in list(self._readers.get(key, ())):
                for task in TASKS:
                    result: _Result | None = unit.results.get(task)
                    if result is not None and key in result.reads:
                        del unit.results[task]
                        self._no_reader_any_more(unit, result)

    def _no_reader_any_more(self, unit: Unit, dropped: _Result) -> None:
        rest = [result for task in TASKS if (result := unit.results.get(task)) is not None]
        for key in dropped.reads:
            if not any(key in result.reads for result in rest):
                self._readers[key].discard(unit)


def findings_in(units: Iterable[Unit]) -> Iterator[Finding]:
    """The findings kept in ``units``, on the lines where their code stands now."""
    for unit in units:
        for task in TASKS:
            result: _Result | None = unit.results.get(task)
            if result is not None and result.findings:
                yield from _where_they_stand(unit, result)


def _where_they_stand(unit: Unit, result: _Result) -> list[Finding]:
    shift = unit.start - result.start
    if not shift and all(holder.start == start for holder, start in result.anchors):
        return result.findings
    anchors = iter(result.anchors)
    moved = []
    for finding in result.findings:
        # A class rule's finding may stand in a member, which moves without its class.
        holder, start = next(anchors, (unit, result.start))
        shift = holder.start - start
        related = []
        for item in finding.related:
            if item.path is None:
                holder, start = next(anchors)
                related.append(replace(item, range=_moved(item.range, holder.start - start)))
            else:
                related.append(item)
        moved.append(replace(finding, range=_moved(finding.range, shift), related=tuple(related)))
    return moved


def _stands_in(unit: Unit, line: int) -> bool:
    return unit.start <= line <= unit.end


def _holding(units: list[Unit], line: int) -> Unit | None:
    found = None
    for unit in units:
        if _stands_in(unit, line) and (found is None or unit.owner is not None):
            found = unit
    return found


def _moved(place: Range, lines: int) -> Range:
    if not lines:
        return place
    return Range(
        Position(place.start.line + lines, place.start.column),
        Position(place.end.line + lines, place.end.column),
    )
