"""The commit a folder is at, read from git's files: asking git would start a program that the folder configures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LONGEST = 8 * 2**20
_LINKS = 5


@dataclass(frozen=True, slots=True)
class Commit:
    """Where a repository stands."""

    commit: str
    branch: str | None
    """None: a detached head."""


def commit_of(folder: Path) -> Commit | None:
    """The commit that the repository around ``folder`` has checked out; None outside one, or before the first."""
    for each in (folder, *folder.parents):
        found = each / ".git"
        if found.is_dir():
            return _head(found, found)
        if found.is_file():
            return _of_worktree(found)
    return None


def _of_worktree(link: Path) -> Commit | None:
    """Of a worktree or submodule: its ``.git`` is a file that names a folder, which may share another's branches."""
    target = _read(link).strip().removeprefix("gitdir:").strip()
    folder = link.parent / target
    shared = _read(folder / "commondir").strip()
    return _head(folder, folder / shared if shared else folder)


def _head(folder: Path, shared: Path) -> Commit | None:
    text = _read(folder / "HEAD").strip()
    branch: str | None = None
    for _ in range(_LINKS):
        if not text.startswith("ref:"):
            break
        name = text.removeprefix("ref:").strip()
        if ".." in name or name.startswith("/"):
            return None
        branch = branch or name.removeprefix("refs/heads/")
        text = (_read(folder / name) or _read(shared / name)).strip() or _packed(shared, name)
    return Commit(text, branch) if _COMMIT.fullmatch(text) else None


def _packed(shared: Path, name: str) -> str:
    for line in _read(shared / "packed-refs").splitlines():
        commit, _, ref = line.partition(" ")
        if ref.strip() == name:
            return commit
    return ""


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_LONGEST)
    except OSError:
        return ""
