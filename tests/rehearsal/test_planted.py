"""The list of failures that are planted in public scripts, and how they come into a script's text."""

from __future__ import annotations

from collections import Counter

import pytest

from .public_scripts.planted import Edit, Planted, patched, plants, scripts_by_name

_TEXT = "first\nsecond\nthird\n"


def _planted(*edits: Edit, **fields: object) -> Planted:
    given = {"name": "a", "script": "b", "concerns": "ranks", "what": "", "why": "", **fields}
    return Planted(kinds=("exception",), edits=edits, **given)  # type: ignore[arg-type]


def test_what_is_planted_is_what_the_page_says() -> None:
    listed = plants()
    assert Counter(each.concerns for each in listed) == {"ranks": 12, "devices": 6, "plain": 6}
    assert len({each.name for each in listed}) == 24
    scripts = scripts_by_name()
    assert len({scripts[each.script].sha256 for each in listed}) == 10


def test_lines_are_put_between_others_and_in_their_place() -> None:
    between = _planted(Edit(2, 1, "\nnew  # here\n"))
    assert patched(_TEXT, between) == ("first\nnew  # here\nsecond\nthird\n", [2])
    instead = _planted(Edit(1, 2, "\none\ntwo\nthree\n"), line=3)
    assert patched(_TEXT, instead) == ("one\ntwo\nthree\nthird\n", [4])


def test_other_lines_where_it_may_show_are_those_of_the_original() -> None:
    planted = _planted(Edit(3, 2, "new  # here"), Edit(1, 0, "zero"), also=(1, 3))
    assert patched(_TEXT, planted)[1] == [2, 5, 4]


def test_a_failure_that_could_show_nowhere_is_refused() -> None:
    with pytest.raises(ValueError, match="no line is marked"):
        patched(_TEXT, _planted(Edit(1, 0, "zero")))
    with pytest.raises(ValueError, match="no line 4"):
        patched(_TEXT, _planted(Edit(4, 3, "new  # here")))
