"""Texts of real failures, most of them from public issues: the right kind, and an explanation with their numbers.

Each line of ``logs/known_failures.jsonl`` has the text, where it is from, its kind and rank, what both languages must
say (``facts``), what each must say (``english``, ``chinese``), what must not be said (``never``), and what must be
advised first (``before``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ranksafe.runs.diagnosis.diagnose import diagnose

_ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "logs" / "known_failures.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]


def _name(row: dict[str, Any]) -> str:
    return f"{row['kind']}-{row['source'].replace('/', '-')}"


@pytest.mark.parametrize("row", _ROWS, ids=_name)
def test_a_real_failure_is_explained(row: dict[str, Any]) -> None:
    failure = diagnose(row["text"])[0]
    assert (failure.kind, failure.rank) == (row["kind"], row["rank"])
    assert failure.root_cause
    english, chinese = failure.explanation.en, failure.explanation.zh_cn
    for fact in row["facts"]:
        assert fact in english
        assert fact in chinese
    for words in row["english"]:
        assert words in english
    for words in row["chinese"]:
        assert words in chinese
    for words in row["never"]:
        assert words not in english
        assert words not in chinese
    places = [english.index(words) for words in row.get("before", ())]
    assert places == sorted(places)
    assert "[[" not in english + chinese
    assert "?" not in english


@pytest.mark.parametrize(
    "row", [row for row in _ROWS if row["kind"] == "launcher"], ids=lambda row: row["source"]
)
def test_a_launchers_word_alone_shows_the_raw_end(row: dict[str, Any]) -> None:
    assert diagnose(row["text"])[0].excerpt == (row["text"].strip(),)
