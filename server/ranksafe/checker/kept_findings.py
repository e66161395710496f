"""Findings that are kept while their file is edited, until their rules run again."""

from __future__ import annotations

from dataclasses import replace

from ranksafe.checker.finding import Finding, Related
from ranksafe.source.position import Position, Range


def moved_below(findings: list[Finding], first: int, last: int, added: int) -> list[Finding]:
    """The findings with the lines they have after an edit of the lines ``first`` to ``last`` (0-based, inclusive) that
    added so many lines; those that the edit touched are left out, and so are related places that it touched."""
    kept = []
    for finding in findings:
        if not added and not _touches(finding, first, last):
            kept.append(finding)
            continue
        place = _moved(finding.range, first, last, added)
        if place is not None:
            related = [_moved_related(item, first, last, added) for item in finding.related]
            kept.append(
                replace(finding, range=place, related=tuple(item for item in related if item))
            )
    return kept


def _touches(finding: Finding, first: int, last: int) -> bool:
    ranges = [finding.range, *(item.range for item in finding.related)]
    return any(place.start.line <= last and first <= place.end.line for place in ranges)


def _moved_related(item: Related, first: int, last: int, added: int) -> Related | None:
    if item.path is not None:
        return item
    place = _moved(item.range, first, last, added)
    return None if place is None else replace(item, range=place)


def _moved(place: Range, first: int, last: int, added: int) -> Range | None:
    if place.end.line < first:
        return place
    if place.start.line <= last:
        return None
    return Range(
        Position(place.start.line + added, place.start.column),
        Position(place.end.line + added, place.end.column),
    )
