"""ranksafe finds in real code what it found before, and little of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.corpus.corpus import CORPORA, findings, gather, identity, read_snapshot

MOST_PER_THOUSAND_LINES = 0.2


@pytest.mark.torch
@pytest.mark.parametrize("name", ["installed", pytest.param("downloaded", marks=pytest.mark.long)])
def test_findings_are_those_of_the_snapshot(name: str, tmp_path: Path) -> None:
    chosen = os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")
    if not chosen:
        pytest.skip("needs torch: RANKSAFE_TEST_TORCH_PYTHON=$(python tools/environments.py torch)")
    lines = gather(name, Path(chosen), tmp_path)
    assert lines > 10_000
    found = findings(name, tmp_path)
    assert sorted(map(identity, found)) == sorted(map(identity, read_snapshot(name)))
    assert 1000 * len(found) / lines <= MOST_PER_THOUSAND_LINES


@pytest.mark.parametrize("name", CORPORA)
def test_every_finding_was_judged(name: str) -> None:
    for finding in read_snapshot(name):
        assert finding["judgement"], finding
