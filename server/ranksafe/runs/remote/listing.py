"""Which files of a project are sent to a host."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ranksafe.localization import Translated
from ranksafe.runs.errors import RunNotPossible

NEVER: Final = frozenset({".git", ".hg", ".svn", ".vscode", ".idea", ".ssh", ".netrc", ".pypirc"})
"""Files and folders that are never sent: history, and where editors and tools keep their secrets."""
NEVER_PREFIX: Final = ".env"
"""``.env``, ``.env.local``, ``.envrc``."""
_NOT_SOURCES: Final = frozenset(
    {
        "__pycache__",
        ".ipynb_checkpoints",
        ".mypy_cache",
        ".nox",
        ".pytest_cache",
        ".ruff_cache",
        ".tox",
        ".venv",
        "node_modules",
        "venv",
    }
)
_ENVIRONMENT_MARKS: Final = ("pyvenv.cfg", "conda-meta")
_MOST_FILES = 50_000
_GIT_TIMEOUT_SECONDS = 60
_SHOWN = 3


@dataclass(slots=True)
class Listing:
    """The files of a project, by their names below its folder, always with ``/``."""

    root: Path
    files: dict[str, list[int | str | None]] = field(default_factory=dict)
    """Size in bytes, time of the last change in ns, mode, where a link leads."""
    left_out: list[str] = field(default_factory=list)
    """Links that lead out of the project."""


def project_root(working_directory: Path, script: Path) -> Path:
    """The folder that is sent: the repository around the working directory, or the script's where that is elsewhere.

    Raises RunNotPossible where that is a home folder or the root of the file system.
    """
    script = script.absolute()
    start = working_directory.absolute()
    if not script.is_relative_to(start):
        start = script.parent
    home = Path.home()
    root = start
    for folder in (start, *start.parents):
        if folder == home or folder == folder.parent:
            break
        if (folder / ".git").exists():
            root = folder
            break
    if root == home or root == root.parent:
        raise RunNotPossible(_NO_PROJECT.filled(folder=root))
    return root


def list_project(root: Path, limit_bytes: float) -> Listing:
    """The files of the project, what git ignores left out.

    Raises RunNotPossible when they are more than ``limit_bytes`` together.
    """
    listing = Listing(root)
    real_root = os.path.realpath(root)
    for name in _names(root):
        parts = name.split("/")
        if any(part in NEVER or part.startswith(NEVER_PREFIX) for part in parts):
            continue
        _take(listing, name, real_root)
        if len(listing.files) > _MOST_FILES:
            raise RunNotPossible(_TOO_MANY.filled(folder=root, count=_MOST_FILES))
    total = sum(int(entry[0] or 0) for entry in listing.files.values())
    if total > limit_bytes:
        raise RunNotPossible(
            _TOO_LARGE.filled(
                folder=root,
                size=total // 10**6,
                limit=round(limit_bytes / 10**6),
                largest=", ".join(_largest(listing)),
            )
        )
    return listing


def _take(listing: Listing, name: str, real_root: str) -> None:
    path = listing.root / name
    try:
        if not _is_below(path.parent, real_root):
            listing.left_out.append(name)
            return
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            target = str(path.readlink())
            inside = os.path.realpath(path).startswith(real_root + os.sep)
            if target.startswith("/") or not inside:
                listing.left_out.append(name)
            else:
                listing.files[name] = [0, 0, 0, target]
        elif stat.S_ISREG(found.st_mode):
            mode = stat.S_IMODE(found.st_mode)
            listing.files[name] = [found.st_size, found.st_mtime_ns, mode, None]
    except OSError:
        return


def _is_below(folder: Path, real_root: str) -> bool:
    """git lists what its index says, also behind a folder that has become a link since."""
    real = os.path.realpath(folder)
    return real == real_root or real.startswith(real_root.rstrip("/") + "/")


def _names(root: Path) -> Iterator[str]:
    names = _from_git(root)
    if names is None:
        yield from _walk(root, "")
        return
    for name in names:
        path = root / name
        if path.is_dir() and not path.is_symlink():  # another repository inside, a submodule
            yield from (f"{name.rstrip('/')}/{below}" for below in _names(path))
        else:
            yield name


def _from_git(root: Path) -> list[str] | None:
    """Tracked files and new ones that are not ignored; None without git. Outside of a repository an empty one is made
    up, so that ``.gitignore`` counts there, too."""
    found = _git_list(root, "-co") if _in_repository(root) else None
    if found is not None:
        return found
    with tempfile.TemporaryDirectory(prefix="ranksafe-") as empty:
        if _git("init", "--quiet", "--bare", empty) is None:
            return None
        names = _git_list(root, "-o", f"--git-dir={empty}", f"--work-tree={root}")
    if names is None:
        return None
    return [name for name in names if not _is_not_source(root, name)]


def _git_list(root: Path, which: str, *options: str) -> list[str] | None:
    output = _git("-C", str(root), *options, "ls-files", "-z", which, "--exclude-standard")
    if output is None:
        return None
    return list(dict.fromkeys(os.fsdecode(name) for name in output.split(b"\0") if name))


def _in_repository(root: Path) -> bool:
    return any((folder / ".git").exists() for folder in (root, *root.parents))


def _git(*arguments: str) -> bytes | None:
    """git's answer, without the programs that a repository's configuration may name; None where it fails."""
    try:
        return subprocess.run(
            ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_TIMEOUT_SECONDS,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None


def _walk(root: Path, below: str) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(root / below), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        name = f"{below}/{entry.name}" if below else entry.name
        if not entry.is_dir(follow_symlinks=False):
            yield name
        elif entry.name not in NEVER | _NOT_SOURCES and not _is_environment(Path(entry.path)):
            yield from _walk(root, name)


def _is_not_source(root: Path, name: str) -> bool:
    folders = name.split("/")[:-1]
    if not _NOT_SOURCES.isdisjoint(folders):
        return True
    return any(_is_environment(root.joinpath(*folders[: i + 1])) for i in range(len(folders)))


def _is_environment(folder: Path) -> bool:
    return any((folder / mark).exists() for mark in _ENVIRONMENT_MARKS)


def _largest(listing: Listing) -> Iterable[str]:
    def size(name: str) -> int:
        return int(listing.files[name][0] or 0)

    names = sorted(listing.files, key=size, reverse=True)[:_SHOWN]
    return (f"{name} ({size(name) // 10**6} MB)" for name in names)


_NO_PROJECT = Translated(
    en="{folder} is not sent to another host: it is no project. Start the run in the project's folder.",
    zh_cn="{folder} 不是项目文件夹，不会发送到其他主机。请在项目文件夹中启动运行。",
)
_TOO_LARGE = Translated(
    en="The project {folder} has {size} MB, more than the {limit} MB that are sent at most. Largest: {largest}. Name "
    "data in .gitignore, or raise project-limit-mb in hosts.toml.",
    zh_cn="项目 {folder} 共 {size} MB，超过允许发送的 {limit} MB。最大的文件：{largest}。请把数据写入 "
    ".gitignore，或在 hosts.toml 中调大 project-limit-mb。",
)
_TOO_MANY = Translated(
    en="The project {folder} has more than {count} files. Name data in .gitignore.",
    zh_cn="项目 {folder} 的文件超过 {count} 个。请把数据写入 .gitignore。",
)
