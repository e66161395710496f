"""Units of an edited file and the old ones that they are."""

from __future__ import annotations

import ast
from typing import Any

from ranksafe.checker.merging import Merge
from ranksafe.semantics.units import Unit

COUNT = 400


class _Counting(str):
    """A text that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: Any) -> bool:
        _Counting.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def _units(*texts: str) -> list[Unit]:
    return [Unit(ast.parse("pass").body, None, _Counting(text)) for text in texts]


def test_units_are_found_again_in_their_order() -> None:
    old = _units("a", "b", "c", "b", "d")
    merge = Merge(old)
    new = merge.merged(_units("x", "b", "b", "c", "y"))
    assert [unit in old for unit in new] == [False, True, True, False, False]
    assert [unit.text for unit in merge.removed] == ["a", "c", "d"]


def test_many_changed_units_are_not_compared_with_each_other() -> None:
    old, new = ([f"{side}{number}" for number in range(COUNT)] for side in ("old", "new"))
    _Counting.compared = 0
    Merge(_units(*old)).merged(_units(*new))
    assert _Counting.compared < 10 * COUNT
