"""Suppression comments: what they cover, what they do not, and which are unused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ranksafe.checker.comments import suppression_comments
from ranksafe.checker.finding import Finding, Level
from ranksafe.checker.suppression import apply_suppressions, suppress, suppress_in_file
from ranksafe.localization import Translated
from ranksafe.source.position import Position, Range
from ranksafe.source.text import SourceText

CHECKED = {"RS001", "RS201", "RS301", "device-map", "batch-split"}


def finding(line: int, code: str = "RS201", name: str = "device-map") -> Finding:
    place = Range(Position(line, 0), Position(line, 1))
    return Finding(code, name, Level.WARNING, Translated("m", "消息"), place)


def codes(text: str, *findings: Finding) -> list[tuple[int, str]]:
    kept = apply_suppressions(text, findings, CHECKED)
    return [(item.range.start.line, item.code) for item in kept]


@pytest.mark.parametrize(
    "comment",
    ["# ranksafe: ignore[RS201]", "#ranksafe:ignore[rs201]", "# ranksafe: ignore[device-map]"],
)
def test_silences_its_line(comment: str) -> None:
    assert codes(f"f()  {comment}\ng()\n", finding(0), finding(1)) == [(1, "RS201")]


def test_other_rules_speak_on() -> None:
    text = "f()  # ranksafe: ignore[RS201]\n"
    assert codes(text, finding(0), finding(0, "RS301", "batch-split")) == [(0, "RS301")]


def test_several_rules_and_other_words_on_one_line() -> None:
    text = "f()  # noqa: E501 # ranksafe: ignore[RS201, RS301] because\n"
    assert codes(text, finding(0), finding(0, "RS301", "batch-split")) == []


@pytest.mark.parametrize("line", [0, 1, 2, 3])
def test_covers_the_logical_line(line: int) -> None:
    text = 'f(\n    "a # b",\n    [1,\n     2])  # ranksafe: ignore[RS201]\ng()\n'
    assert codes(text, finding(line), finding(4)) == [(4, "RS201")]


def test_covers_a_string_of_several_lines_and_a_continuation() -> None:
    assert codes('x = """\n\n"""  # ranksafe: ignore[RS201]\n', finding(0)) == []
    assert codes("x = 1 + \\\n  2  # ranksafe: ignore[RS201]\n", finding(0)) == []


def test_a_header_does_not_cover_its_block() -> None:
    text = "def f(a):  # ranksafe: ignore[RS201]\n    g()\n"
    assert codes(text, finding(1)) == [(0, "RS001"), (1, "RS201")]


@pytest.mark.parametrize(
    "text",
    [
        'f("# ranksafe: ignore[RS201]")\n',
        '"""\n# ranksafe: ignore[RS201]\n"""\n',
        "x = r'\\' + '# ranksafe: ignore[RS201]'\n",
    ],
)
def test_a_hash_in_a_string_is_no_comment(text: str) -> None:
    assert suppression_comments(text) == () or "r'" in text


def test_whole_file() -> None:
    text = '#!/usr/bin/env python\n"""Docs."""\n# ranksafe: ignore-file[RS201]\nimport os\nf()\n'
    assert codes(text, finding(3), finding(4)) == []


def test_whole_file_only_at_the_top() -> None:
    text = "import os\n# ranksafe: ignore-file[RS201]\nf()\n"
    assert codes(text, finding(2)) == [(1, "RS001"), (2, "RS201")]


def test_unused_and_empty_comments_are_findings() -> None:
    text = "f()  # ranksafe: ignore[RS201, RS301]\ng()  # ranksafe: ignore\n"
    kept = apply_suppressions(text, [finding(0)], CHECKED)
    assert [(item.code, SourceText(text).slice(item.range)) for item in kept] == [
        ("RS001", "RS301"),
        ("RS001", "# ranksafe: ignore"),
    ]


def test_a_rule_that_did_not_run_is_not_called_unused() -> None:
    assert apply_suppressions("f()  # ranksafe: ignore[RS301]\n", [], {"RS001", "RS201"}) == ()
    assert apply_suppressions("f()  # ranksafe: ignore[RS201]\n", [], {"RS201"}) == ()


def test_rs001_can_be_silenced_but_not_by_itself() -> None:
    assert codes("f()  # ranksafe: ignore[RS201, RS001]\n") == []
    assert codes("f()  # ranksafe: ignore[RS001]\n") == [(0, "RS001")]


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("f(\ng()  # ranksafe: ignore[RS201]\nh()\n", 1, []),
        ("f(\ndef g():  # ranksafe: ignore[RS201]\n    pass\n", 1, []),
        ("f(\ndef g():  # ranksafe: ignore[RS201]\n    pass\n", 0, [(0, "RS201"), (1, "RS001")]),
        ('x = "unclosed\ng()  # ranksafe: ignore[RS201]\n', 1, []),
        ("x = )\ng()  # ranksafe: ignore[RS201]\n", 1, []),
    ],
)
def test_half_typed_text(text: str, line: int, expected: list[tuple[int, str]]) -> None:
    assert codes(text, finding(line)) == expected


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("f()\n", 0, "f()  # ranksafe: ignore[RS201]\n"),
        ("f()  # why\r\n", 0, "f()  # why  # ranksafe: ignore[RS201]\r\n"),
        ("f()   ", 0, "f()  # ranksafe: ignore[RS201]"),
        ("f()  # ranksafe: ignore[RS301]\n", 0, "f()  # ranksafe: ignore[RS301, RS201]\n"),
        (
            "f(\n  a)  # ranksafe: ignore[RS301]\n",
            0,
            "f(\n  a)  # ranksafe: ignore[RS301, RS201]\n",
        ),
        ("x = f + \\\n    1\n", 0, "x = f + \\\n    1  # ranksafe: ignore[RS201]\n"),
        ('x = f("""\n"""\n)\n', 0, 'x = f("""\n"""  # ranksafe: ignore[RS201]\n)\n'),
    ],
)
def test_suppressing_a_finding(text: str, line: int, expected: str) -> None:
    edited = SourceText(text).edited([suppress(text, finding(line))])
    assert edited == expected
    assert codes(edited, finding(line), finding(line, "RS301", "batch-split"))[-1:] != [
        (line, "RS201")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f()\n", "# ranksafe: ignore-file[RS201]\nf()\n"),
        ("\r\nf()\r\n", "# ranksafe: ignore-file[RS201]\r\n\r\nf()\r\n"),
        ("#!python\nf()\n", "#!python\n# ranksafe: ignore-file[RS201]\nf()\n"),
        (
            "# ours\n# -*- coding: gbk -*-\nf()\n",
            "# ours\n# -*- coding: gbk -*-\n# ranksafe: ignore-file[RS201]\nf()\n",
        ),
        (
            "# ranksafe: ignore-file[RS301]\nf()\n",
            "# ranksafe: ignore-file[RS301, RS201]\nf()\n",
        ),
        ("", "# ranksafe: ignore-file[RS201]\n"),
    ],
)
def test_suppressing_a_rule_in_a_file(text: str, expected: str) -> None:
    edited = SourceText(text).edited([suppress_in_file(text, "RS201")])
    assert edited == expected
    line = edited.count("\n") - 1
    assert (line, "RS201") not in codes(edited, finding(line))


@given(st.text(alphabet="#\"'()[]{}\\\n\r ranksafe:ignoRS201,def@中\u2028🤗", max_size=200))
def test_never_raises_and_stays_inside_the_text(text: str) -> None:
    lines = SourceText(text).lines
    for comment in suppression_comments(text):
        place = comment.range
        assert 0 <= comment.first_line <= place.start.line <= comment.last_line < len(lines)
        assert place.end.column <= len(lines[place.start.line])
        assert SourceText(text).slice(place).startswith("#")
