"""Folders with the code of other projects: copies that are kept beside one's own, with their licence."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ranksafe.cli.gitignore import is_repository
from ranksafe.source.plain_files import read_plain

_LICENCE: Final = re.compile(r"(licen[cs]e|copying)(\.(txt|md|rst))?", re.IGNORECASE)
_MOST_BYTES: Final = 1 << 20


class OtherProjects:
    """Seen from the project that a folder belongs to. Where that has no licence, nothing is another's."""

    def __init__(self, folder: Path) -> None:
        self._own = _of_project(folder.absolute())

    def begin_in(self, folder: Path, names: Iterable[str]) -> bool:
        """Whether a folder with files of these names has a licence, and none that the project has."""
        found = _licences(folder, names) if self._own else frozenset()
        return bool(found) and found.isdisjoint(self._own)


def _of_project(folder: Path) -> frozenset[bytes]:
    """The licences of the folder, or else of the nearest around it that has some, up to the root of its repository."""
    around = (folder, *folder.parents)
    root = next(filter(is_repository, around), folder)
    for place in around[: around.index(root) + 1]:
        try:
            found = _licences(place, [path.name for path in place.iterdir()])
        except OSError:
            return frozenset()
        if found:
            return found
    return frozenset()


def _licences(folder: Path, names: Iterable[str]) -> frozenset[bytes]:
    """Their words, whatever the line ends."""
    found = set()
    for name in names:
        if _LICENCE.fullmatch(name):
            try:
                found.add(b" ".join(read_plain(folder / name, _MOST_BYTES).split()))
            except OSError:
                continue
    return frozenset(found)
