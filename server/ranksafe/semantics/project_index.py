"""The files of a project, read when somebody asks about them."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ranksafe.semantics.facts import DATA_PARALLEL, TRAINER
from ranksafe.semantics.libraries import canonical
from ranksafe.semantics.module import Module
from ranksafe.semantics.summary import Summary, summarize
from ranksafe.source.recovery import parse_tolerantly
from ranksafe.source.text import SourceText

_MAXIMUM_FILES = 20_000
_MAXIMUM_SIZE = 2_000_000
_MAXIMUM_HOPS = 20
_DATA_PARALLEL_CALL = re.compile(r"(?<!\w)DataParallel\(")
_RUNS_BY_ITSELF = re.compile(r"__main__|^\w+\.train\(", re.MULTILINE)
_NOT_OURS = frozenset(
    {".git", ".venv", "venv", "node_modules", "__pycache__", "site-packages", ".tox", ".nox", "build", "dist"}
)  # fmt: skip


def read_text(path: Path) -> str | None:
    """A Python file's text; None when it cannot be read, is huge or no text."""
    try:
        if path.stat().st_size > _MAXIMUM_SIZE:
            return None
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None


class ProjectIndex:
    """Implements `ranksafe.semantics.project.Project` over one folder."""

    def __init__(self, root: Path, read: Callable[[Path], str | None] = read_text) -> None:
        self.root = root.absolute()
        self._read = read
        self._files: list[Path] | None = None
        self._open_texts: dict[Path, str] = {}
        self._names: dict[Path, str] = {}
        self._paths: dict[str, Path | None] = {}
        self._summaries: dict[Path, Summary | None] = {}
        self._replicated: dict[str, frozenset[str]] | None = None

    # -- keeping up to date

    def update(self, path: Path, text: str | None) -> bool:
        """Take over the text of an open or changed file (None: read it from disk again).

        Says whether answers about other files may have changed.
        """
        path = path.absolute()
        before = self._summaries.pop(path, None)
        if text is None:
            self._open_texts.pop(path, None)
        else:
            self._open_texts[path] = text
        if self._files is not None and path not in self._files:
            self._files = None
            self._paths.clear()
        mattered = before is not None or self._replicated is not None
        self._replicated = None
        return mattered

    def _text(self, path: Path) -> str | None:
        return self._open_texts.get(path) or self._read(path)

    def files(self) -> list[Path]:
        """The project's Python files, sorted; folders of environments and caches are left out."""
        if self._files is None:
            self._files = sorted(self._walk())[:_MAXIMUM_FILES]
        return self._files

    def _walk(self) -> Iterator[Path]:
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name not in _NOT_OURS and name[:1] != "."]
            for name in names:
                if name.endswith(".py"):
                    yield Path(folder, name)

    # -- names of modules

    def module_name(self, path: Path) -> str:
        """Dotted name of the module in a file: from its outermost package, else its path below the project's root."""
        path = path.absolute()
        name = self._names.get(path)
        if name is None:
            name = _dotted_path(path, self.root)
            self._names[path] = name
            self._paths[name] = path
        return name

    def import_name(self, importer: str | None, module: str) -> str:
        """What ``import module`` means in a file: a project module's name, else the name as it is."""
        if importer is None:
            return module
        folder = Path(importer).absolute().parent
        parts = module.split(".")
        for base in self._search_folders(folder):
            found = _module_file(base, parts[:1])
            if found is not None:
                return ".".join([self.module_name(found), *parts[1:]])
        return module

    def _search_folders(self, folder: Path) -> Iterator[Path]:
        """Where an absolute import may find a first-party module: beside the file, then upwards, then src/."""
        current = folder
        while True:
            yield current
            if current == self.root or current.parent == current:
                break
            current = current.parent
        yield self.root / "src"

    def _path_of(self, module: str) -> Path | None:
        if module not in self._paths:
            parts = module.split(".")
            found = None
            for base in (self.root, self.root / "src"):
                found = found or _module_file(base, parts)
            self._paths[module] = found
        return self._paths[module]

    def _split(self, name: str) -> tuple[str, Path, list[str]] | None:
        """The longest leading part of a dotted name that is a module, its file, and the rest."""
        parts = name.split(".")
        for length in range(len(parts), 0, -1):
            module = ".".join(parts[:length])
            path = self._path_of(module)
            if path is not None:
                return module, path, parts[length:]
        return None

    def _summary(self, path: Path) -> Summary | None:
        if path not in self._summaries:
            text = self._text(path)
            self._summaries[path] = None if text is None else summarize(text)
        return self._summaries[path]

    # -- the Project protocol

    def resolve(self, name: str, hops: int = 0) -> str:
        """The name of the definition behind a dotted name, re-exports followed; the name itself when unknown."""
        found = self._split(name)
        if found is None or not found[2] or hops > _MAXIMUM_HOPS:
            return name
        module, path, rest = found
        summary = self._summary(path)
        if summary is None:
            return name
        head = rest[0]
        if head in summary.classes or head in summary.functions:
            return name
        if head in summary.imports or head in summary.aliases:
            target = self._in_file(path, module, summary, head)
            if target is not None and target != name:
                return self.resolve(canonical(".".join([target, *rest[1:]])), hops + 1)
        for level, star in summary.stars:
            origin = self._absolute(path, module, level, star)
            exported = self.export(origin, head, hops + 1)
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

    def export(self, module: str, name: str, hops: int = 0) -> str | None:
        """What ``from module import *`` brings under ``name``."""
        path = self._path_of(module)
        summary = None if path is None else self._summary(path)
        if path is None or summary is None or hops > _MAXIMUM_HOPS or name.startswith("_"):
            return None
        if summary.public is not None and name not in summary.public:
            return None
        known = {*summary.classes, *summary.functions, *summary.imports, *summary.aliases}
        if name in known or summary.stars:
            resolved = self.resolve(f"{module}.{name}", hops + 1)
            return resolved if resolved != f"{module}.{name}" or name in known else None
        return None

    def is_class(self, name: str) -> bool:
        """Whether a dotted name is a class of the project."""
        return self._class(name) is not None

    def _class(self, name: str) -> tuple[Path, str, Summary] | None:
        found = self._split(name)
        if found is None or len(found[2]) != 1:
            return None
        module, path, rest = found
        summary = self._summary(path)
        if summary is None or rest[0] not in summary.classes:
            return None
        return path, module, summary

    def bases(self, name: str) -> list[str]:
        """Canonical names of a project class's bases."""
        return self._names_in_class(name, bases=True)

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

    def constant(self, name: str) -> ast.expr | None:
        """The literal that a module-level name of the project is bound to, when there is just one."""
        found = self._split(name)
        if found is None or len(found[2]) != 1:
            return None
        summary = self._summary(found[1])
        return None if summary is None else summary.constants.get(found[2][0])

    # -- who trains whose models

    def trains_with_trainer(self, module: str) -> bool:
        """Whether an entry script of the project hands a model of this module to a Trainer, or builds a Trainer of this
        module, and shows no launcher."""
        return any(name.startswith(f"{module}.") for name in self._classes_used()["trained"])

    def wraps_data_parallel(self, module: str) -> bool:
        """Whether a file of the project wraps a model of this module in nn.DataParallel."""
        return any(name.startswith(f"{module}.") for name in self._classes_used()["replicated"])

    def _classes_used(self) -> dict[str, frozenset[str]]:
        if self._replicated is None:
            # The answer must exist while it is computed: the files looked at ask for facts themselves.
            self._replicated = {"trained": frozenset(), "replicated": frozenset()}
            trained: set[str] = set()
            replicated: set[str] = set()
            for path in self.files():
                text = self._text(path)
                if text is None or not _may_train(text):
                    continue
                self._look_at_user(path, text, trained, replicated)
            self._replicated = {
                "trained": self._with_parts(trained),
                "replicated": self._with_parts(replicated),
            }
        return self._replicated

    def _look_at_user(self, path: Path, text: str, trained: set[str], replicated: set[str]) -> None:
        parsed = parse_tolerantly(text)
        if parsed is None:
            return
        module = Module(SourceText(text), self.module_name(path), str(path), self)
        module.fill(parsed.tree)
        replicated |= _models_of(module, module.calls(DATA_PARALLEL), "module")
        facts = module.facts
        if facts.is_entry and not facts.launcher_evidence:
            trained |= _models_of(module, module.calls(TRAINER), "model")
            trained |= {name for name, _ in facts.trainers}

    def _with_parts(self, names: set[str]) -> frozenset[str]:
        """The classes and every project class they are put together from."""
        found: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name not in found and self.is_class(name):
                found.add(name)
                pending += self._names_in_class(name, bases=False)
                pending += self.bases(name)
        return frozenset(found)


def _may_train(text: str) -> bool:
    """Whether a file may hand models to nn.DataParallel, or be a script that builds a Trainer: asked of the text, so
    that only a few files of a project are parsed."""
    if _DATA_PARALLEL_CALL.search(text) is not None:
        return True
    return "Trainer(" in text and _RUNS_BY_ITSELF.search(text) is not None


def _models_of(module: Module, calls: Iterable[ast.Call], keyword: str) -> set[str]:
    found = set()
    for call in calls:
        model = module.argument_node(call, keyword, 0)
        if model is not None and (name := module.type_of(model)) is not None:
            found.add(name)
    return found


def _dotted_path(path: Path, root: Path) -> str:
    parts = [] if path.stem == "__init__" else [path.stem]
    folder = path.parent
    if (folder / "__init__.py").is_file():
        while (folder / "__init__.py").is_file() and folder.parent != folder:
            parts.insert(0, folder.name)
            folder = folder.parent
        return ".".join(parts)
    try:
        relative = folder.relative_to(root)
    except ValueError:
        return ".".join(parts)
    return ".".join([*relative.parts, *parts])


def _module_file(base: Path, parts: list[str]) -> Path | None:
    folder = base.joinpath(*parts)
    package = folder / "__init__.py"
    if package.is_file():
        return package
    file = folder.with_suffix(".py")
    return file if file.is_file() else None
