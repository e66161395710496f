"""What git is told to ignore: ``.gitignore`` from the repository's folder downwards, and ``.git/info/exclude``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from ranksafe.source.plain_files import read_plain

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

    _Rules: TypeAlias = tuple[Path, GitIgnoreSpec]
    """A folder, and the patterns that are relative to it."""

_MOST_BYTES: Final = 4 << 20
_FILE: Final = ".gitignore"


@dataclass(slots=True)
class GitIgnore:
    """Reads each of these files once. Outside of repositories nothing is ignored, as with git."""

    _by_folder: dict[Path, tuple[_Rules, ...] | None] = field(default_factory=dict)

    def ignores(self, path: Path, *, is_folder: bool) -> bool:
        """Whether an absolute path is left out; the nearest file that speaks of it decides."""
        for folder, spec in reversed(self._that_hold_in(path.parent) or ()):
            name = path.relative_to(folder).as_posix() + ("/" if is_folder else "")
            said = spec.check_file(name).include
            if said is not None:
                return said
        return False

    def ignores_all_of(self, folder: Path) -> bool:
        """Whether a folder, or one of its repository that it lies in, is left out."""
        while not self.ignores(folder, is_folder=True):
            if is_repository(folder) or folder.parent == folder:
                return False
            folder = folder.parent
        return True

    def _that_hold_in(self, folder: Path) -> tuple[_Rules, ...] | None:
        """The rules of a folder, the nearest last; None outside of repositories."""
        if folder in self._by_folder:
            return self._by_folder[folder]
        found: tuple[_Rules, ...] | None = None
        if is_repository(folder):
            found = _read(folder, folder / ".git" / "info" / "exclude")
        elif folder.parent != folder:
            found = self._that_hold_in(folder.parent)
        if found is not None:
            found = (*found, *_read(folder, folder / _FILE))
        self._by_folder[folder] = found
        return found


def is_repository(folder: Path) -> bool:
    """Whether a folder is a repository's; one that may not be read is none of ours to look into."""
    try:
        return (folder / ".git").exists()
    except OSError:
        return False


def _read(folder: Path, file: Path) -> tuple[_Rules, ...]:
    try:
        lines = read_plain(file, _MOST_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return ()
    spec = _understood(lines)
    return () if spec is None else ((folder, spec),)


def _understood(lines: Iterable[str]) -> GitIgnoreSpec | None:
    # Imported here: most folders that are checked have none of these files.
    from pathspec import GitIgnoreSpec

    patterns = [line for line in lines if line.strip() and not line.startswith("#")]
    if not patterns:
        return None
    try:
        return GitIgnoreSpec.from_lines(patterns)
    except ValueError:
        return GitIgnoreSpec.from_lines(filter(_is_pattern, patterns))


def _is_pattern(line: str) -> bool:
    """Whether a line can be understood; git goes on without those that cannot."""
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
