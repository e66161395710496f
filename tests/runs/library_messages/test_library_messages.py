"""What the installed libraries say of ordinary mistakes is known by what they say today."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from ranksafe.runs.explain.signatures import match

MISTAKES = Path(__file__).with_name("mistakes.py")
_MARK = "MISTAKE "
_AT_LEAST = 20


@pytest.mark.long
def test_what_the_libraries_raise_is_known(torch_python: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [torch_python, str(MISTAKES)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    made = [
        json.loads(line[len(_MARK) :])
        for line in done.stdout.splitlines()
        if line.startswith(_MARK)
    ]
    assert len(made) >= _AT_LEAST
    wrong = {}
    for mistake in made:
        kind = mistake["name"].split(" ")[0]
        known = match(mistake["raised"] or "")
        if known is None or known[0].kind != kind:
            wrong[mistake["name"]] = (known and known[0].kind, mistake["raised"])
    assert wrong == {}
