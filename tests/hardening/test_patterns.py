"""Promise: no regular expression of the product that sees code or logs of users takes more than linear time over it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.hardening.patterns import ONCE, Found, all_patterns, hostile_texts

_SIZES: Final = (500, 2_000, 8_000)
_LINEAR: Final = re.compile(r"(?:[a-y]|[^a-z\0])*\0")
_TIMES_AS_SLOW: Final = 40
"""Of a plain loop over the same text: at 8,000 characters a quadratic one is many hundred times as slow."""
_MESSAGES: Final = "ranksafe.runs.explain.signatures"
"""Known failures are searched in one message, of which 8,000 characters are looked at: what is at most quadratic takes
a fraction of a second over it. A cubic one took a minute."""
_TIMES_AS_SLOW_OVER_MESSAGES: Final = 1_500
"""At 2,000 characters."""

ALL = all_patterns()


def applied(pattern: re.Pattern[Any], methods: frozenset[str], text: Any) -> int:
    """Nanoseconds of this thread's CPU, the least of two attempts."""
    taken = []
    for _ in range(2):
        start = time.thread_time_ns()
        if methods and methods <= ONCE:
            for method in methods:
                getattr(pattern, method)(text)
        else:
            for _match in pattern.finditer(text):
                pass
        taken.append(time.thread_time_ns() - start)
    return min(taken)


def slow(found: Found) -> Iterator[str]:
    """Texts over which a pattern takes more than linear time; small ones first, so that none takes long."""
    is_of_messages = found.module == _MESSAGES
    times = _TIMES_AS_SLOW_OVER_MESSAGES if is_of_messages else _TIMES_AS_SLOW
    for size in _SIZES[:2] if is_of_messages else _SIZES:
        limit = applied(_LINEAR, frozenset({"match"}), "x" * size) * times
        for text in hostile_texts(found.pattern, size):
            if applied(found.pattern, found.applied, text) > limit:
                yield f"{size}: {text[:60]!r}"
                return


@pytest.mark.parametrize(
    "found", ALL, ids=lambda found: f"{found.module}: {found.pattern.pattern!r:.60}"
)
def test_is_linear(found: Found) -> None:
    assert next(slow(found), None) is None, found.pattern.pattern


def test_the_patterns_are_there() -> None:
    """The collection finds those of tables, of classes and of calls, and a quadratic one is told."""
    modules = {found.module.split(".")[1] for found in all_patterns()}
    assert {"checker", "runs", "lsp", "cli", "source", "semantics"} <= modules
    assert len(ALL) > 100
    assert next(slow(Found(re.compile(r"\w*Trainer"), "", frozenset({"search"}))), None)
