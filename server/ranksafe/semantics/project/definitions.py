"""Which definitions the names in a project's files stand for: functions, classes and constants."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path
from typing import Final

from ranksafe.semantics.libraries import canonical
from ranksafe.semantics.project.files import ProjectFiles
from ranksafe.semantics.project.star_imports import StarImports
from ranksafe.semantics.project.summary import Summary
from ranksafe.semantics.project.texts import ProjectTexts

_MAXIMUM_HOPS: Final = 20


class Definitions:
    """Answers from the summaries of files; implements most of `ranksafe.semantics.cross_file.Project`."""

    def __init__(self, files: ProjectFiles, texts: ProjectTexts) -> None:
        self.modules = files
        self.texts = texts
        self._stars = StarImports(files, texts)

    def module_name(self, path: Path) -> str:
        """Dotted name of the module in a file: from its outermost package, else its path below the project's root."""
        return self.modules.module_name(path)

    def import_name(self, importer: str | None, module: str) -> str:
        """What ``import module`` means in a file: a project module's name, else the name as it is."""
        return self.modules.import_name(importer, module)

    def text_of(self, path: Path) -> str | None:
        """The text of a file: the editor's where it is open, else the disk's; None when it cannot be read."""
        return self.texts.text_of(path.absolute())

    def resolve(self, name: str) -> str:
        """The name of the definition behind a dotted name, re-exports followed; the name itself when unknown."""
        return self._resolve(name, 0, set())

    def _resolve(self, name: str, hops: int, seen: set[tuple[str, str]]) -> str:
        found = self.modules.split(name)
        if found is None or not found[2] or hops > _MAXIMUM_HOPS:
            return name
        module, path, rest = found
        summary = self.texts.summary(path)
        if summary is None:
            return name
        head = rest[0]
        if head in summary.classes or head in summary.functions:
            return name
        if head in summary.imports or head in summary.aliases:
            target = self._in_file(path, module, summary, head)
            if target is not None and target != name:
                return self._resolve(canonical(".".join([target, *rest[1:]])), hops + 1, seen)
        for origin in self._stars.bringing(path, summary, head):
            exported = self._export(origin, head, hops + 1, seen)
            if exported is not None:
                return ".".join([exported, *rest[1:]])
        return name

    def _in_file(self, path: Path, module: str, summary: Summary, written: str) -> str | None:
        """Absolute dotted name of something written in a file."""
        head, _, rest = written.partition(".")
        if head in summary.imports:
            level, target = summary.imports[head]
            base = self.modules.absolute(path, module, level, target)
        elif head in summary.aliases and summary.aliases[head] != head:
            found = self._in_file(path, module, summary, summary.aliases[head])
            if found is None:
                return None
            base = found
        elif head in summary.classes or head in summary.functions:
            base = f"{module}.{head}"
        else:
            return None
        return f"{base}.{rest}" if rest else base

    def export(self, module: str, name: str) -> str | None:
        """What ``from module import *`` brings under ``name``."""
        return self._export(module, name, 0, set())

    def _export(self, module: str, name: str, hops: int, seen: set[tuple[str, str]]) -> str | None:
        # Packages bring each other's names by many ways; what was looked at once for a name says nothing new.
        if name.startswith("_") or hops > _MAXIMUM_HOPS or (module, name) in seen:
            return None
        seen.add((module, name))
        path = self.modules.path_of(module)
        summary = None if path is None else self.texts.summary(path)
        if summary is None or (summary.public is not None and name not in summary.public):
            return None
        is_bound = summary.binds(name)
        if is_bound or summary.stars:
            resolved = self._resolve(f"{module}.{name}", hops + 1, seen)
            return resolved if is_bound or resolved != f"{module}.{name}" else None
        return None

    def is_class(self, name: str) -> bool:
        """Whether a dotted name is a class of the project."""
        return self._class(name) is not None

    def _class(self, name: str) -> tuple[Path, str, Summary] | None:
        found = self.modules.split(name)
        if found is None or len(found[2]) != 1:
            return None
        module, path, rest = found
        summary = self.texts.summary(path)
        if summary is None or rest[0] not in summary.classes:
            return None
        return path, module, summary

    def bases(self, name: str) -> list[str]:
        """Canonical names of a project class's bases."""
        return self._names_in_class(name, bases=True)

    def parts(self, name: str) -> list[str]:
        """Canonical names of what a project class's methods make: the parts a model is put together from."""
        return self._names_in_class(name, bases=False)

    def _names_in_class(self, name: str, *, bases: bool) -> list[str]:
        found = self._class(name)
        if found is None:
            return []
        path, module, summary = found
        cls = summary.classes[name.rpartition(".")[2]]
        names = []
        for written in cls.bases if bases else cls.makes:
            absolute = self._in_file(path, module, summary, written)
            if absolute is not None:
                names.append(self.resolve(canonical(absolute)))
        return names

    def constant_source(self, name: str) -> str | None:
        """The source of the literal that `constant` gives."""
        found = self.modules.split(self.resolve(name))
        if found is None or len(found[2]) != 1:
            return None
        summary = self.texts.summary(found[1])
        return None if summary is None else summary.constants.get(found[2][0])

    def constant(self, name: str) -> ast.expr | None:
        """The literal that a module-level name of the project is bound to, when there is just one; re-exports
        followed."""
        source = self.constant_source(name)
        return None if source is None else _literal(source)

    def definition_file(self, name: str) -> tuple[str, Path] | None:
        """The module, and its file, that defines the function or class with a dotted name (of a method: its class),
        re-exports followed; None when it is no definition of the project."""
        found = self.modules.split(self.resolve(name))
        if found is None or not found[2]:
            return None
        module, path, rest = found
        summary = self.texts.summary(path)
        if summary is None:
            return None
        defined = rest[0] in summary.classes or (len(rest) == 1 and rest[0] in summary.functions)
        return (module, path) if defined else None


@lru_cache(maxsize=1024)
def _literal(source: str) -> ast.expr | None:
    try:
        return ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError):
        return None
