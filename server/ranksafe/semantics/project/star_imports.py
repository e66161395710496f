"""Which of a file's ``from module import *`` statements may bring a name.

Packages that re-export everything hold hundreds of such statements on top of each other: asked one by one, for every
name again, they would take longer than everything else together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ranksafe.semantics.project.files import ProjectFiles
from ranksafe.semantics.project.summary import Summary
from ranksafe.semantics.project.texts import ProjectTexts


@dataclass(frozen=True, slots=True)
class _Table:
    by_name: dict[str, tuple[str, ...]]
    read: frozenset[Path]
    """The files whose summaries have a part in it."""


@dataclass(slots=True)
class StarImports:
    """Tables of the files that were asked about, made again when a file says something else."""

    files: ProjectFiles
    texts: ProjectTexts
    _tables: dict[Path, _Table] = field(default_factory=dict)

    def bringing(self, path: Path, summary: Summary, name: str) -> tuple[str, ...]:
        """The modules among a file's star imports, in their order, that bind a name or import all from one that does;
        whether they let it out is another question."""
        if not summary.stars:
            return ()
        table = self._tables.get(path)
        if table is None:
            table = self._tables[path] = self._made(path, summary)
        self.texts.note(table.read)
        return table.by_name.get(name, ())

    def changed(self) -> None:
        """A file says something else to others, came or went."""
        self._tables.clear()

    def _origins(self, path: Path, summary: Summary) -> list[str]:
        """The modules from which a file imports all."""
        module = self.files.module_name(path)
        return [self.files.absolute(path, module, level, name) for level, name in summary.stars]

    def _made(self, path: Path, summary: Summary) -> _Table:
        by_name: dict[str, tuple[str, ...]] = {}
        read: set[Path] = set()
        for origin in dict.fromkeys(self._origins(path, summary)):
            alone = (origin,)
            for name in self._names_from(origin, read):
                others = by_name.get(name)
                by_name[name] = alone if others is None else others + alone
        return _Table(by_name, frozenset(read))

    def _names_from(self, module: str, read: set[Path]) -> set[str]:
        """All names bound in a module and in those from which it imports all."""
        names: set[str] = set()
        seen = {module}
        pending = [module]
        while pending:
            path = self.files.path_of(pending.pop())
            summary = None if path is None else self.texts.summary(path)
            if path is None or summary is None:
                continue
            read.add(path)
            names |= summary.bound_names()
            for origin in self._origins(path, summary):
                if origin not in seen:
                    seen.add(origin)
                    pending.append(origin)
        return names
