"""The server's own list of lines and the client's columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ranksafe.lsp.lines import LineBuffer, PositionEncoding, TouchedLines, without_end
from ranksafe.source.position import Position, Range
from ranksafe.source.text import split_lines

TEXTS = st.text(alphabet="ab\n\r\f\u2028 中🤗", max_size=30)


@pytest.mark.parametrize(
    ("encoding", "units"),
    [
        (PositionEncoding.UTF8, 3 + 3 + 4 + 1),
        (PositionEncoding.UTF16, 1 + 1 + 2 + 1),
        (PositionEncoding.UTF32, 4),
    ],
)
def test_each_encoding_counts_chinese_and_emoji_in_its_own_units(
    encoding: PositionEncoding, units: int
) -> None:
    assert encoding.units("中文🤗x") == units
    assert encoding.code_points("中文🤗xy\n", units) == 4


def test_a_position_inside_a_character_is_that_characters_start() -> None:
    assert PositionEncoding.UTF16.code_points("a🤗b", 2) == 1
    assert PositionEncoding.UTF8.code_points("a中b", 2) == 1


def test_a_position_beyond_the_line_is_its_end() -> None:
    assert PositionEncoding.UTF16.code_points("ab\r\n", 99) == 2
    assert PositionEncoding.UTF16.code_points("中b\r\n", 99) == 2


@given(TEXTS)
@pytest.mark.parametrize("encoding", list(PositionEncoding))
def test_columns_survive_the_way_to_the_client_and_back(
    encoding: PositionEncoding, text: str
) -> None:
    line = without_end(split_lines(text)[0])
    for column in range(len(line) + 1):
        assert encoding.code_points(line, encoding.units(line[:column])) == column


@given(TEXTS, TEXTS, st.data())
def test_an_edit_of_the_lines_is_an_edit_of_the_text(
    text: str, new_text: str, data: st.DataObject
) -> None:
    buffer = LineBuffer(text)
    start, end = sorted([_position(buffer, data), _position(buffer, data)])
    before = _offset(buffer, start), _offset(buffer, end)
    expected = text[: before[0]] + new_text + text[before[1] :]
    old = list(buffer.lines)

    touched = buffer.replace(Range(start, end), new_text)

    assert buffer.text == expected
    assert buffer.lines == split_lines(expected)
    _check_touched(old, buffer.lines, touched)


@given(TEXTS, TEXTS)
def test_a_whole_new_text_touches_only_the_lines_that_differ(text: str, new_text: str) -> None:
    buffer = LineBuffer(text)
    old = list(buffer.lines)
    touched = buffer.replace_all(new_text)
    assert buffer.lines == split_lines(new_text)
    _check_touched(old, buffer.lines, touched)


@given(st.lists(st.tuples(TEXTS, st.integers(), st.integers()), min_size=1, max_size=5), TEXTS)
def test_edits_one_after_the_other_are_one_edit(
    edits: list[tuple[str, int, int]], text: str
) -> None:
    buffer = LineBuffer(text)
    old = list(buffer.lines)
    whole: TouchedLines | None = None
    for new_text, one, other in edits:
        first, last = sorted((one % len(buffer.lines), other % len(buffer.lines)))
        touched = buffer.replace(Range(Position(first, 0), Position(last, 0)), new_text)
        whole = touched if whole is None else whole.then(touched)
    assert whole is not None
    _check_touched(old, buffer.lines, whole)


def _check_touched(old: list[str], new: list[str], touched: TouchedLines) -> None:
    """Outside the touched lines nothing may differ."""
    assert old[: touched.first] == new[: touched.first]
    assert old[touched.last + 1 :] == new[touched.new_last + 1 :]
    assert touched.shift == len(new) - len(old)


def _position(buffer: LineBuffer, data: st.DataObject) -> Position:
    line = data.draw(st.integers(0, len(buffer.lines) - 1))
    column = data.draw(st.integers(0, len(without_end(buffer.lines[line]))))
    return Position(line, column)


def _offset(buffer: LineBuffer, position: Position) -> int:
    return sum(map(len, buffer.lines[: position.line])) + position.column
