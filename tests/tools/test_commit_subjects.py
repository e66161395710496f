"""Which commits are judged, on real repositories."""

from __future__ import annotations

import subprocess
from pathlib import Path

import commit_subjects
import pytest

LONG = "x" * (commit_subjects.LONGEST + 1)
FITS = "y" * commit_subjects.LONGEST


def git(folder: Path, *arguments: str) -> str:
    own = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    done = subprocess.run(
        ["git", "-C", str(folder), *own, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Three commits, of which the first and the last have long subjects."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for subject in (f"old {LONG}", FITS, LONG):
        git(folder, "commit", "--quiet", "--allow-empty", "-m", subject)
    return folder


def test_what_came_after_the_base_is_judged(repository: Path) -> None:
    assert commit_subjects.too_long(repository, git(repository, "rev-parse", "HEAD~2")) == [LONG]
    assert commit_subjects.too_long(repository, git(repository, "rev-parse", "HEAD")) == []


def test_a_shallow_clone_is_judged_as_far_as_it_goes(repository: Path, tmp_path: Path) -> None:
    base = git(repository, "rev-parse", "HEAD~2")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth=2", f"file://{repository}", str(shallow))
    assert commit_subjects.too_long(shallow, base) == [LONG]


def test_without_its_own_history_nothing_is_judged(repository: Path, tmp_path: Path) -> None:
    base = git(repository, "rev-parse", "HEAD~2")
    assert commit_subjects.too_long(tmp_path, base) == []
    unpacked = repository / "unpacked"
    unpacked.mkdir()
    assert commit_subjects.too_long(unpacked, base) == []
    assert commit_subjects.too_long(repository) == []
