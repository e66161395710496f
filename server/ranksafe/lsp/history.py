"""What stays on screen between two analyses: history lives here, analysis knows none.

An analysis of half-typed text lacks what is broken in it and may report what only half a statement means. So a finding
in the broken part stays, moved with its line, until the text there parses again; and a finding that is new on a line
being typed waits until the text parses or the typing pauses.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.lsp.lines import TouchedLines
from ranksafe.source.position import Position, Range

if TYPE_CHECKING:
    from ranksafe.checker.analysis import Status
    from ranksafe.checker.finding import Finding


class FindingHistory:
    """The findings of one document as they are shown."""

    def __init__(self) -> None:
        self.shown: tuple[Finding, ...] = ()
        self.held_back: tuple[Finding, ...] = ()
        self._is_out_of_date = False
        self._typed: list[TouchedLines] = []
        """Edited since the text parsed or the typing paused; ``first`` to ``new_last`` are today's lines."""

    def shift(self, touched: TouchedLines) -> None:
        """Move what is shown with the lines of an edit."""
        self._typed = [_shifted_lines(lines, touched) for lines in self._typed]
        self._typed.append(touched)
        if touched.shift:
            self.shown = tuple(_shifted_finding(finding, touched) for finding in self.shown)

    def out_of_date(self) -> None:
        """Settings changed: the next analysis keeps nothing of what is shown, whatever can be read."""
        self._is_out_of_date = True

    def update(
        self, findings: Sequence[Finding], status: Status, blanked: Collection[int] = ()
    ) -> None:
        """Take over an analysis; ``blanked``: the lines it left out because they are broken."""
        if self._is_out_of_date:
            self._is_out_of_date = False
            self.shown, self.held_back, self._typed = (), (), []
        if status == "stale":
            return
        if status == "complete":
            self._typed = []
            self.shown, self.held_back = tuple(findings), ()
            return
        known = {_identity(finding) for finding in self.shown}
        fresh: list[Finding] = []
        held_back: list[Finding] = []
        for finding in findings:
            waits = _identity(finding) not in known and self._is_typed(finding)
            (held_back if waits else fresh).append(finding)
        found = {_identity(finding) for finding in findings}
        lines = sorted(blanked)
        kept = (
            finding
            for finding in self.shown
            if _identity(finding) not in found and _touches(finding, lines)
        )
        self.shown, self.held_back = _sorted((*fresh, *kept)), tuple(held_back)

    def paused(self) -> None:
        """The typing has paused: nothing that is found from now on has to wait."""
        self._typed = []
        self.shown, self.held_back = _sorted((*self.shown, *self.held_back)), ()

    def _is_typed(self, finding: Finding) -> bool:
        lines = finding.range
        return any(
            lines.start.line <= typed.new_last and typed.first <= lines.end.line
            for typed in self._typed
        )


def shifted_range(place: Range, touched: TouchedLines) -> Range:
    """A range after an edit: moved when it lies below, stretched when the edit is inside it."""
    return Range(_shifted_position(place.start, touched), _shifted_position(place.end, touched))


def _shifted_position(position: Position, touched: TouchedLines) -> Position:
    if position.line > touched.last:
        return Position(position.line + touched.shift, position.column)
    if position.line > touched.new_last:
        return Position(max(touched.new_last, 0), position.column)
    return position


def _shifted_finding(finding: Finding, touched: TouchedLines) -> Finding:
    if finding.range.end.line < touched.first and not finding.related:
        return finding
    related = tuple(
        one if one.path else replace(one, range=shifted_range(one.range, touched))
        for one in finding.related
    )
    return replace(finding, range=shifted_range(finding.range, touched), related=related)


def _identity(finding: Finding) -> tuple[str, int, str]:
    return (finding.code, finding.range.start.line, finding.message.en)


def _shifted_lines(lines: TouchedLines, touched: TouchedLines) -> TouchedLines:
    moved = shifted_range(Range(Position(lines.first, 0), Position(lines.new_last, 0)), touched)
    return TouchedLines(moved.start.line, moved.end.line, moved.end.line)


def _touches(finding: Finding, lines: Sequence[int]) -> bool:
    """Whether a finding stands on one of the lines, which are sorted."""
    place = finding.range
    first = bisect_left(lines, place.start.line)
    return first < len(lines) and lines[first] <= place.end.line


def _sorted(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: (finding.range, finding.code)))
