"""Which files a file's findings may depend on: what it imports, and what that imports.

More is named rather than less: who imports a whole package may reach everything in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ranksafe.semantics.project_index import ProjectIndex


@dataclass(slots=True)
class Dependents:
    """The import graph of a project, as far as it was asked about."""

    index: ProjectIndex
    _imported: dict[Path, tuple[Path, ...]] = field(default_factory=dict)
    _closures: dict[Path, frozenset[Path]] = field(default_factory=dict)

    def known(self, path: Path, *, moved: bool = False) -> tuple[frozenset[Path], frozenset[Path]]:
        """The files whose closures are known, and those of them that depend on a file (``moved``: on its existence)."""
        if moved:
            dependents = [start for start, files in self._closures.items() if _near(path, files)]
        else:
            dependents = [start for start, files in self._closures.items() if path in files]
        return frozenset(self._closures), frozenset(dependents)

    def closure(self, path: Path) -> frozenset[Path]:
        """All files whose text may have a part in the findings of a file, itself left out unless it is imported."""
        if path not in self._closures:
            for _ in self.following(path):
                pass
        return self._closures[path]

    def following(self, path: Path) -> Iterator[int]:
        """Find the closure step by step, one file at a time; gives how many are known."""
        if path in self._closures:
            return
        found: set[Path] = set()
        pending = [path]
        while pending:
            for imported in self.imported(pending.pop()):
                if imported not in found:
                    found.add(imported)
                    pending.append(imported)
            yield len(found)
        self._closures[path] = frozenset(found)

    def imported(self, path: Path) -> tuple[Path, ...]:
        """The project's files that a file imports itself."""
        found = self._imported.get(path)
        if found is None:
            found = self._imported[path] = tuple(sorted(self._find(path)))
        return found

    def text_changed(self, path: Path) -> None:
        """A file may import something else."""
        before = self._imported.pop(path, None)
        if before is None or before == self.imported(path):
            return
        for start in [start for start, files in self._closures.items() if path in files]:
            del self._closures[start]
        self._closures.pop(path, None)

    def files_changed(self) -> None:
        """Files came or went, and any import may mean something else."""
        self._imported.clear()
        self._closures.clear()

    def depends(self, path: Path, on: Iterable[Path], *, moved: bool = False) -> bool:
        """Whether a file depends on one of others (``moved``: on its existence)."""
        files = self.closure(path)
        if moved:
            return any(_near(other, files) or _near(other, [path]) for other in on)
        return not files.isdisjoint(on)

    def _find(self, path: Path) -> set[Path]:
        found: set[Path] = set()
        for name in self.index.imports_of(path):
            if name.endswith(".*"):
                split = self.index.split(name[:-2])
                if split is not None:
                    found.add(split[1])
                continue
            split = self.index.split(name)
            if split is not None:
                found.add(split[1])
            if split is None or split[2] or split[1].name == "__init__.py":
                found.update(self.index.below(name))
        return found


def _near(moved: Path, files: Collection[Path]) -> bool:
    """Whether a file is one of some files, or decides what their modules are called."""
    if moved in files:
        return True
    if moved.name != "__init__.py":
        return False
    return any(file.is_relative_to(moved.parent) for file in files)
