"""Calls go up and down over the end of a piece of CPython's stack without a visit to the operating system each time."""

from __future__ import annotations

import resource
from collections.abc import Callable

import pytest
from ranksafe.checker.room_for_calls import with_room_for_calls

DEPTHS = 600
"""A piece of 16 KiB holds some 136 of these frames, so several ends are among them."""
CALLS = 200


def nothing() -> None:
    pass


def below(depth: int, work: Callable[[], None]) -> None:
    if depth:
        below(depth - 1, work)
    else:
        work()


def call_often() -> None:
    for _ in range(CALLS):
        nothing()


def most_pages_fetched() -> int:
    """At the depth that is worst: pages that the operating system handed out meanwhile."""
    most = 0
    for depth in range(DEPTHS):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        below(depth, call_often)
        most = max(most, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return most


def test_no_depth_is_slow() -> None:
    assert with_room_for_calls(most_pages_fetched)() < CALLS / 2


def test_the_function_stays_what_it_was() -> None:
    def divided(number: int, *, by: int) -> float:
        """A quotient."""
        return number / by

    roomy = with_room_for_calls(divided)
    assert roomy(6, by=4) == 1.5
    assert (roomy.__name__, roomy.__doc__) == ("divided", "A quotient.")
    with pytest.raises(ZeroDivisionError):
        roomy(1, by=0)
    assert roomy(6, by=3) == 2
