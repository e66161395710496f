"""What the files of a project say to each other, found out when somebody asks and kept for the next session.

Answers never depend on what was asked before, nor on how far `ProjectIndex.build` has come.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from ranksafe.semantics.libraries import canonical
from ranksafe.semantics.project.changes import Change
from ranksafe.semantics.project.dependents import Dependents
from ranksafe.semantics.project.files import ProjectFiles, read_text
from ranksafe.semantics.project.star_imports import StarImports
from ranksafe.semantics.project.summary import Summary, to_text
from ranksafe.semantics.project.summary_store import SummaryStore
from ranksafe.semantics.project.texts import ProjectTexts
from ranksafe.semantics.project.training import TrainingUses

_MAXIMUM_HOPS = 20


class ProjectIndex:
    """Implements `ranksafe.semantics.project.protocol.Project` over one folder.

    ``store_folder``: where to keep what is found out; None: nowhere.
    """

    def __init__(
        self,
        root: Path,
        read: Callable[[Path], str | None] = read_text,
        *,
        store_folder: Path | None = None,
    ) -> None:
        self.root = root.absolute()
        self.store = SummaryStore(store_folder, self.root)
        self.texts = ProjectTexts(read, self.store)
        self._names = ProjectFiles(self.root)
        self._training = TrainingUses(self)
        self._dependents = Dependents(self)
        self._stars = StarImports(self)

    # -- keeping up to date

    def update(self, path: Path, text: str | None = None) -> Change:
        """Take over the text of an open file, or (None) look at it on disk again."""
        path = path.absolute()
        texts = self.texts
        before = texts.known_hash(path, opening=text is not None)
        looked_at = before is not None or texts.was_looked_at(path)
        summary_before = None if before is None else texts.known_summary(path, before)
        files = self._names.note_existence(path)
        followed, dependents = self._dependents.known(path, moved=files)
        trained = self._training.known
        texts.take_over(path, text)
        changed = looked_at and before != texts.hash_of(path)
        summary = False
        if changed:
            after = texts.load_summary(path)
            summary = None in (summary_before, after) or summary_before != _as_text(after)
        if files or summary:
            self._stars.changed()
        if files:
            self._training.files_changed()
            self._dependents.files_changed()
        if changed:
            self._training.text_changed(path)
            self._dependents.text_changed(path)
        if summary:
            self._training.summary_changed(path)
        return Change(path, files, changed, summary, followed, dependents, trained)

    def affected(self, changes: Iterable[Change], files: Iterable[Path]) -> set[Path]:
        """Which of some files may have other findings after the changes, those made since `affected` was asked last;
        a changed file itself only where it depends on itself through others."""
        changes = [change for change in changes if change]
        if not changes:
            return set()
        changed = {change.path for change in changes}
        moved = {change.path for change in changes if change.files}
        classes: set[str] = set()
        for before in {change.trained for change in changes}:
            if before is not None:
                classes |= before.differences(self._training.answer())
        found = set()
        for path in files:
            file = path.absolute()
            if (
                any(change.may_have_affected(file) for change in changes)
                or self._dependents.depends(file, changed)
                or (moved and self._dependents.depends(file, moved, moved=True))
                or (classes and _is_of(self.module_name(file), classes))
            ):
                found.add(path)
        return found

    def files(self) -> list[Path]:
        """The project's Python files, sorted; folders of environments and caches are left out."""
        return self._names.all()

    def known_below(self, folder: Path) -> list[Path]:
        """Those of `files` that are in a folder or below it, as far as they are known already."""
        return self._names.below_folder(folder.absolute())

    def build(self, *, longest: int | None = None) -> Iterator[tuple[int, int]]:
        """Find out everything ahead of the questions, in short steps; gives how many files of how many are done.

        ``longest``: in bytes; longer files are left for when somebody asks about them.
        """
        if not self._names.is_listed:
            for count in self._names.listing():
                yield 0, count
        files = list(self.files())
        for done, path in enumerate(files, 1):
            self.texts.prepare(path, longest)
            yield done, len(files)
        for path in files:
            if self.texts.may_train(path):
                self._training.look_at(path)
                yield len(files), len(files)
        self._training.answer()

    def closure_steps(self, path: Path) -> Iterator[int]:
        """Find out in short steps what a file depends on, so that `affected` knows."""
        return self._dependents.following(path.absolute())

    def depends(self, path: Path, on: Path) -> bool:
        """Whether a file is known to depend on another one; False while nobody has asked what it depends on."""
        return self._dependents.knows(path.absolute(), on.absolute())

    def closure(self, path: Path) -> frozenset[Path]:
        """The files that may have a part in a file's findings."""
        return self._dependents.closure(path.absolute())

    # -- texts

    def text_of(self, path: Path) -> str | None:
        """The text of a file: the editor's where it is open, else the disk's; None when it cannot be read."""
        return self.texts.text_of(path.absolute())

    def imports_of(self, path: Path) -> Iterator[str]:
        """Absolute dotted names of all that a file imports."""
        summary = self.texts.load_summary(path)
        if summary is not None:
            module = self.module_name(path)
            for level, name in summary.depends:
                yield self._absolute(path, module, level, name)

    # -- names of modules

    def module_name(self, path: Path) -> str:
        """Dotted name of the module in a file: from its outermost package, else its path below the project's root."""
        return self._names.module_name(path)

    def import_name(self, importer: str | None, module: str) -> str:
        """What ``import module`` means in a file: a project module's name, else the name as it is."""
        return self._names.import_name(importer, module)

    def path_of(self, module: str) -> Path | None:
        """The file of a module; None when it is none of the project's."""
        return self._names.path_of(module)

    def stars_of(self, path: Path, summary: Summary) -> Iterator[str]:
        """The modules from which a file imports all."""
        module = self.module_name(path)
        for level, name in summary.stars:
            yield self._absolute(path, module, level, name)

    def split(self, name: str) -> tuple[str, Path, list[str]] | None:
        """The longest leading part of a dotted name that is a module, its file, and the rest."""
        return self._names.split(name)

    def below(self, package: str) -> list[Path]:
        """The files of a package and of the packages in it."""
        return self._names.below(package)

    def has_below(self, package: str) -> bool:
        """Whether `below` finds anything."""
        return self._names.has_below(package)

    # -- the Project protocol

    def resolve(self, name: str) -> str:
        """The name of the definition behind a dotted name, re-exports followed; the name itself when unknown."""
        return self._resolve(name, 0, set())

    def _resolve(self, name: str, hops: int, seen: set[tuple[str, str]]) -> str:
        found = self.split(name)
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
            base = self._absolute(path, module, level, target)
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

    def _absolute(self, path: Path, module: str, level: int, target: str) -> str:
        if not level:
            return self.import_name(str(path), target)
        parts = module.split(".")
        keep = len(parts) - level + (1 if path.name == "__init__.py" else 0)
        return ".".join([*parts[: max(keep, 0)], *([target] if target else [])])

    def export(self, module: str, name: str) -> str | None:
        """What ``from module import *`` brings under ``name``."""
        return self._export(module, name, 0, set())

    def _export(self, module: str, name: str, hops: int, seen: set[tuple[str, str]]) -> str | None:
        # Packages bring each other's names by many ways; what was looked at once for a name says nothing new.
        if name.startswith("_") or hops > _MAXIMUM_HOPS or (module, name) in seen:
            return None
        seen.add((module, name))
        path = self._names.path_of(module)
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
        found = self.split(name)
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
        found = self.split(self.resolve(name))
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
        found = self.split(self.resolve(name))
        if found is None or not found[2]:
            return None
        module, path, rest = found
        summary = self.texts.summary(path)
        if summary is None:
            return None
        defined = rest[0] in summary.classes or (len(rest) == 1 and rest[0] in summary.functions)
        return (module, path) if defined else None

    # -- who trains whose models

    def trains_with_trainer(self, module: str) -> bool:
        """Whether an entry script of the project hands a model of this module to a Trainer, or builds a Trainer of this
        module, and shows no launcher."""
        return _is_of(module, self._training.answer().by_trainer)

    def wraps_data_parallel(self, module: str) -> bool:
        """Whether a file of the project wraps a model of this module in nn.DataParallel."""
        return _is_of(module, self._training.answer().replicated)


def _is_of(module: str, names: Iterable[str]) -> bool:
    return any(name.startswith(f"{module}.") for name in names)


def _as_text(summary: Summary | None) -> str | None:
    return None if summary is None else to_text(summary)


@lru_cache(maxsize=1024)
def _literal(source: str) -> ast.expr | None:
    try:
        return ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError):
        return None
