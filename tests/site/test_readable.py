"""Patterns as text that people recognise."""

from __future__ import annotations

import re

import pytest
from ranksafe.runs.explain.signatures import signatures
from website.readable import VARIES, fits, wordings


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("one|two", ("one", "two")),
        (r"\AError: (?P<n>\d+)ms for (?:recv|send)\Z", ("Error: …ms for recv", "Error: …ms for send")),
        ("device(?:s|\\(s\\)) busy", ("devices busy", "device(s) busy")),
        ("Ranks? failed", ("Rank failed", "Ranks failed")),
        (r"--local[-_]rank", ("--local-rank", "--local_rank")),
        (r"[Aa]ddress\s+in  use", ("Address in use",)),
        (r"a model[\s\S]*?on (?!cpu)\w+ and (?P<x>\w+)(?P=x) end", ("a model…on … and … end",)),
        (r"\w+: \d+", ()),
        # More than a reader takes in: what says least is left open.
        (
            "(?:a|b|c|d|e) (?:first|second|third|fourth)",
            ("first", "second", "third", "fourth"),
        ),
    ],
)  # fmt: skip
def test_wordings(pattern: str, texts: tuple[str, ...]) -> None:
    assert wordings(pattern) == texts


def test_a_wording_without_anything_open_is_a_message_of_its_pattern() -> None:
    """What is listed is never more than what the signature knows."""
    checked = 0
    for signature in signatures():
        pattern = signature.pattern.pattern
        for wording in wordings(pattern):
            bare = not re.search(r"\\[bAZs]|\^|\$|\?[!=<P]|[*+?{]", pattern)
            if VARIES not in wording and bare:
                checked += 1
                assert signature.pattern.search(wording), (pattern, wording)
    assert checked > 80


def test_fits() -> None:
    assert fits("Timed out waiting …ms for recv", "[x] Timed out waiting 5000ms\n for recv or so")
    assert not fits("Timed out waiting …ms for recv", "recv: Timed out waiting 5000ms for send")
    assert not fits("two … one", "one two")
