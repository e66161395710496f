"""What is said of a failure above is not said again below it."""

from __future__ import annotations

from dataclasses import replace

from ranksafe.cli.render_failure import render_failure
from ranksafe.cli.terminal import Style
from ranksafe.localization import Translated
from ranksafe.runs.model import Failure

_MISMATCH = Translated("Detected mismatch between collectives on ranks", "…")
_MEANING = Translated("Ranks do different things.", "各 rank 做了不同的事。")
_FIRST = replace(
    Failure.without_place("collective-mismatch", _MISMATCH, _MEANING, "en"), code="RS401", rank=0
)


def _below(failure: Failure) -> str:
    told = replace(_FIRST, message=f"{_FIRST.message}; rank 0 took the branch at train.py:3")
    return render_failure(replace(failure, root_cause=False), "en", Style(False), told)


def test_another_rank_of_the_same_failure_is_named_and_no_more() -> None:
    assert _below(replace(_FIRST, rank=1)) == "follows rank 1: the same, met here"


def test_another_failure_keeps_its_own_words() -> None:
    other = replace(_FIRST, rank=1, message="ValueError: bad batch")
    assert _below(other).splitlines()[0] == "follows[RS401] rank 1: ValueError: bad batch"
