"""Commit subjects stay short enough to be read in a list: under 72 characters.

Judges the commits since BASE, as far as this clone has them. Without a history, say in a source archive, there is
nothing to judge.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASE = "49bd4f7f78ecc6dc1221b14f4d121257f87767d4"
"""The last commit before the rule."""
LONGEST = 71


def too_long(folder: Path, base: str = BASE) -> list[str]:
    """The subjects in the history of ``folder`` since ``base`` that are too long, newest first."""
    if _git(folder, "rev-parse", "--show-toplevel") != [str(folder)]:
        return []  # The sources are not a clone; they may still lie in somebody's repository.
    if _git(folder, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}"):
        judged = [f"{base}..HEAD"]
    elif _git(folder, "rev-parse", "--is-shallow-repository") == ["true"]:
        judged = ["HEAD"]
    else:
        return []
    subjects = _git(folder, "log", "--format=%s", *judged)
    return [subject for subject in subjects if len(subject) > LONGEST]


def _git(folder: Path, *arguments: str) -> list[str]:
    """The lines that git answers; none where it has no answer."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    except OSError:
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def main() -> int:
    found = too_long(ROOT)
    for subject in found:
        print(f"{len(subject)} characters, {LONGEST} at most: {subject}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
