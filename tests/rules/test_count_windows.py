"""The boundaries of transformers versions that the messages name."""

from __future__ import annotations

import pytest
from packaging.version import Version
from ranksafe_rules._shared.count_windows import Count, count_at

TABLE = {
    Count.ABSENT: ["4.30.0", "4.45.2"],
    Count.INTEGER: ["4.46.0", "4.46.1", "4.47.1", "4.48.3", "4.49.0"],
    Count.ZERO_DIMENSIONAL: ["4.46.2", "4.46.3", "4.47.0", "4.50.0", "4.50.3"],
    Count.LENGTH_ONE: ["4.51.0", "4.51.3", "4.53.3", "4.56.2"],
    Count.PER_REPLICA: ["4.57.0", "4.57.6", "5.0.0", "5.23.0"],
}


@pytest.mark.parametrize(
    ("version", "form"), [(text, form) for form, texts in TABLE.items() for text in texts]
)
def test_form(version: str, form: Count) -> None:
    assert count_at(Version(version)) is form


def test_unknown() -> None:
    assert count_at(None) is Count.UNKNOWN
