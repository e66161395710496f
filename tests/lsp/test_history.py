"""What stays on screen between two analyses, and what waits."""

from __future__ import annotations

import sys

from ranksafe.checker.finding import Finding, Level, Related
from ranksafe.localization import Translated
from ranksafe.lsp.history import FindingHistory
from ranksafe.lsp.lines import TouchedLines
from ranksafe.source.position import Position, Range


def test_a_new_finding_on_a_typed_line_waits_while_the_text_is_broken() -> None:
    history = _history(_finding(2))
    history.shift(TouchedLines(5, 5, 5))
    history.update((_finding(2), _finding(5)), "partial", {9})
    assert _lines(history) == [2]
    history.paused()
    assert _lines(history) == [2, 5]


def test_a_new_finding_on_another_line_does_not_wait() -> None:
    history = _history()
    history.shift(TouchedLines(5, 5, 5))
    history.update((_finding(2),), "partial", {5})
    assert _lines(history) == [2]


def test_nothing_waits_once_the_text_parses() -> None:
    history = _history()
    history.shift(TouchedLines(5, 5, 5))
    history.update((_finding(5),), "partial", {9})
    history.update((_finding(5),), "complete")
    assert _lines(history) == [5]


def test_a_finding_known_on_a_typed_line_stays() -> None:
    history = _history(_finding(5))
    history.shift(TouchedLines(5, 5, 5))
    history.update((_finding(5),), "partial", {9})
    assert _lines(history) == [5]


def test_a_finding_in_what_was_left_out_stays_and_one_elsewhere_goes() -> None:
    history = _history(_finding(3), _finding(7))
    history.shift(TouchedLines(3, 3, 3))
    history.update((), "partial", {3})
    assert _lines(history) == [3]


def test_an_unreadable_text_keeps_everything_where_its_lines_went() -> None:
    history = _history(_finding(3), _finding(7))
    history.shift(TouchedLines(5, 5, 8))
    history.update((), "stale")
    assert _lines(history) == [3, 10]


def test_related_places_move_too() -> None:
    related = Related(Translated("there", "那里"), Range(Position(8, 0), Position(8, 4)))
    history = _history(_finding(1, related))
    history.shift(TouchedLines(4, 4, 6))
    assert history.shown[0].related[0].range.start.line == 10


def test_a_finding_on_deleted_lines_stays_beside_them_until_the_next_analysis() -> None:
    history = _history(_finding(6))
    history.shift(TouchedLines(4, 7, 4))
    assert _lines(history) == [4]
    history.update((), "complete")
    assert _lines(history) == []


def _history(*findings: Finding) -> FindingHistory:
    history = FindingHistory()
    history.update(findings, "complete")
    return history


def _finding(line: int, *related: Related) -> Finding:
    place = Range(Position(line, 4), Position(line, 10))
    message = Translated("wrong", "错误")
    return Finding("RS201", "some-rule", Level.WARNING, message, place, related)


def _lines(history: FindingHistory) -> list[int]:
    return [finding.range.start.line for finding in history.shown]


def test_work_is_in_proportion_to_what_is_pasted() -> None:
    """Half-typed text with many new findings, in the place of many that stay."""

    def calls(count: int) -> int:
        history = _history(*(_finding(2 * count + line) for line in range(count)))
        history.shift(TouchedLines(0, count, count))
        found = tuple(_finding(line) for line in range(count))
        made = [0]

        def called(*_of: object) -> None:
            made[0] += 1

        sys.setprofile(called)
        try:
            history.update(found, "partial", set(range(2 * count, 3 * count)))
        finally:
            sys.setprofile(None)
        return made[0]

    assert calls(400) < 4 * 1.6 * calls(100)
