"""Which files a file's findings may depend on: what it imports, and what that imports.

More is named rather than less: who imports a whole package may reach everything in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ranksafe.semantics.project.files import ProjectFiles
from ranksafe.semantics.project.import_scan import imported
from ranksafe.semantics.project.texts import ProjectTexts


@dataclass(frozen=True, slots=True)
class _Imported:
    """What one file imports itself."""

    files: frozenset[Path]
    packages: frozenset[str]
    """Those of which any part may be meant."""


@dataclass(slots=True)
class Dependents:
    """The import graph of a project, as far as it was asked about."""

    files: ProjectFiles
    texts: ProjectTexts
    _imported: dict[Path, _Imported] = field(default_factory=dict)
    _closures: dict[Path, frozenset[Path]] = field(default_factory=dict)
    _loaded: dict[Path, frozenset[Path]] = field(default_factory=dict)
    _changes: int = 0
    """How often an import came to mean something else."""

    def known(self, path: Path, *, moved: bool = False) -> tuple[frozenset[Path], frozenset[Path]]:
        """The files whose closures are known, and those of them that depend on a file (``moved``: on its existence)."""
        if moved:
            dependents = [start for start, files in self._closures.items() if _near(path, files)]
        else:
            dependents = [start for start, files in self._closures.items() if path in files]
        return frozenset(self._closures), frozenset(dependents)

    def knows(self, path: Path, on: Path) -> bool:
        """Whether a file is known to depend on another one."""
        return on in self._closures.get(path, ())

    def closure(self, path: Path) -> frozenset[Path]:
        """All files whose text may have a part in the findings of a file, itself left out unless it is imported."""
        if path not in self._closures:
            for _ in self.following(path):
                pass
        return self._closures[path]

    def loaded(self, path: Path) -> frozenset[Path]:
        """The files that are loaded with a file, as its import statements and theirs say: of a package that is
        imported, what its ``__init__.py`` imports, and not all that lies in it."""
        if path not in self._loaded:
            found: set[Path] = set()
            pending = [path]
            while pending:
                new = {
                    file
                    for imported in self._imported_by(pending.pop()).files
                    for file in (imported, *self._packages_around(imported))
                }
                pending += new - found
                found |= new
            self._loaded[path] = frozenset(found)
        return self._loaded[path]

    def _packages_around(self, path: Path) -> Iterator[Path]:
        """The ``__init__.py`` files that run before a module of theirs."""
        for folder in path.parents:
            package = folder / "__init__.py"
            if package not in self.files:
                return
            yield package

    def following(self, path: Path) -> Iterator[int]:
        """Find the closure step by step, one file at a time; gives how many are known."""
        while path not in self._closures:
            # What was read before a change must not be put together with what is read after it.
            changes = self._changes
            found: set[Path] = set()
            expanded: set[str] = set()
            pending = [path]
            while pending and changes == self._changes:
                imported = self._imported_by(pending.pop())
                new = imported.files - found
                for package in imported.packages - expanded:
                    expanded.add(package)
                    new |= set(self.files.below(package)) - found
                found |= new
                pending += new
                yield len(found)
            if changes == self._changes:
                self._closures[path] = self._shared(frozenset(found))

    def _shared(self, files: frozenset[Path]) -> frozenset[Path]:
        """Files that import each other have one closure, kept once."""
        return next((known for known in self._closures.values() if known == files), files)

    def _imported_by(self, path: Path) -> _Imported:
        found = self._imported.get(path)
        if found is None:
            found = self._imported[path] = self._find(path)
        return found

    def text_changed(self, path: Path) -> None:
        """A file may import something else."""
        before = self._imported.pop(path, None)
        if before is None or before == self._imported_by(path):
            return
        self._changes += 1
        self._loaded.clear()
        for start in [start for start, files in self._closures.items() if path in files]:
            del self._closures[start]
        self._closures.pop(path, None)

    def files_changed(self) -> None:
        """Files came or went, and any import may mean something else."""
        self._changes += 1
        self._imported.clear()
        self._loaded.clear()
        self._closures.clear()

    def depends(self, path: Path, on: Iterable[Path], *, moved: bool = False) -> bool:
        """Whether a file depends on one of others (``moved``: on its existence)."""
        files = self.closure(path)
        if moved:
            return any(_near(other, files) or _near(other, [path]) for other in on)
        return not files.isdisjoint(on)

    def imports_of(self, path: Path) -> Iterator[str]:
        """Absolute dotted names of all that a file imports."""
        text = self.texts.text_of(path)
        module = self.files.module_name(path)
        for level, name in () if text is None else imported(text):
            yield self.files.absolute(path, module, level, name)

    def _find(self, path: Path) -> _Imported:
        files: set[Path] = set()
        packages: set[str] = set()
        for name in self.imports_of(path):
            is_star = name.endswith(".*")
            split = self.files.split(name.removesuffix(".*"))
            if split is not None:
                files.add(split[1])
            if not is_star and (split is None or split[2] or split[1].name == "__init__.py"):
                if self.files.has_below(name):
                    packages.add(name)
        return _Imported(frozenset(files), frozenset(packages))


def _near(moved: Path, files: Collection[Path]) -> bool:
    """Whether a file is one of some files, or decides what their modules are called."""
    if moved in files:
        return True
    if moved.name != "__init__.py":
        return False
    return any(file.is_relative_to(moved.parent) for file in files)
