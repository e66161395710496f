"""A project's Python files: which there are, what stands in them, what their modules are called."""

from __future__ import annotations

import bisect
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ranksafe.source.plain_files import read_plain

MAXIMUM_FILES: Final = 20_000
_LINE_END: Final = re.compile(r"\r\n?")
_MAXIMUM_FOLDERS: Final = 50_000
MAXIMUM_SIZE: Final = 2_000_000
"""Of a file that is read."""
_NOT_OURS: Final = frozenset(
    {".git", ".venv", "venv", "node_modules", "__pycache__", "site-packages", ".tox", ".nox", "build", "dist"}
)  # fmt: skip


def read_text(path: Path) -> str | None:
    """A Python file's text; None when it cannot be read, is huge or no text."""
    try:
        text = read_plain(path, MAXIMUM_SIZE).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None
    return _LINE_END.sub("\n", text) if "\r" in text else text


def content_hash(text: str) -> str:
    """Identifies a file's text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def walk(root: Path) -> Iterator[Path]:
    """The Python files below a folder in the order of their paths, links to folders not followed; folders of
    environments and caches are left out. What cannot be read is left out, too."""
    pending = [str(root)]
    visited = 0
    while pending:
        path = pending.pop()
        if path.endswith(".py"):
            yield Path(path)
            continue
        visited += 1
        if visited > _MAXIMUM_FOLDERS:
            return
        try:
            with os.scandir(path) as entries:
                found = [entry for entry in entries if _is_wanted(entry)]
        except OSError:
            continue
        # The last one is taken first.
        pending += sorted((entry.path for entry in found), reverse=True)


def _is_wanted(entry: os.DirEntry[str]) -> bool:
    try:
        if entry.is_dir(follow_symlinks=False):
            # A folder named like a file would be taken for one.
            return is_ours(entry.name) and not entry.name.endswith(".py")
        return entry.name.endswith(".py") and not entry.is_dir()
    except OSError:
        return False


def is_ours(folder: str) -> bool:
    """Whether files in a folder with this name belong to the project."""
    return folder not in _NOT_OURS and not folder.startswith(".")


class ProjectFiles:
    """The files below one folder and the names of their modules.

    Module names say nothing of where a package lies, so of several packages with one name the same is always meant:
    the one in the root, the one in ``src``, else the first by path.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._files: list[Path] | None = None
        self._set: set[Path] = set()
        self._moved_meanwhile: set[Path] = set()
        """Files that came or went before the list was complete: their folders may have been read already."""
        self._names: dict[Path, str] = {}
        self._paths: dict[str, Path | None] = {}
        self._imports: dict[tuple[str, str], str | None] = {}
        self._folders: dict[Path, str | None] = {}
        self._heads: dict[tuple[Path, str], bool] = {}
        self._elsewhere: dict[str, Path] | None = None
        self._filled: set[str] | None = None

    # -- which there are

    @property
    def is_listed(self) -> bool:
        """Whether `all` has been asked for, so that it costs nothing any more."""
        return self._files is not None

    def all(self) -> list[Path]:
        """The project's Python files, sorted."""
        if self._files is None:
            for _ in self.listing():
                pass
        assert self._files is not None
        return self._files

    def __contains__(self, path: object) -> bool:
        """Whether a file is on disk and of the project; one that is only open in an editor is not."""
        self.all()
        return path in self._set

    def listing(self) -> Iterator[int]:
        """Make the list step by step; gives how many files have been found."""
        found: list[Path] = []
        for path in walk(self.root):
            found.append(path)
            yield len(found)
            if len(found) == MAXIMUM_FILES:
                break
        if self._files is None:
            self._files = sorted(found)
            self._set = set(found)
            moved, self._moved_meanwhile = self._moved_meanwhile, set()
            for path in moved:
                self.note_existence(path)

    def note_existence(self, path: Path) -> bool:
        """A file may have come or gone; whether it did, and module names may mean something else now."""
        if not self._is_below(path):
            return False
        if self._files is None:
            self._moved_meanwhile.add(path)
            self._forget_names()
            return True
        exists = path.suffix == ".py" and path.is_file()
        if exists == (path in self._set):
            return False
        if exists:
            bisect.insort(self._files, path)
            self._set.add(path)
        else:
            self._files.remove(path)
            self._set.discard(path)
        self._forget_names()
        return True

    def below(self, package: str) -> list[Path]:
        """The files of a package, also one without ``__init__.py``, and of the packages in it."""
        return [path for folder in self._folders_of(package) for path in self._below(folder)]

    def below_folder(self, folder: Path) -> list[Path]:
        """The files known to be in a folder or below it, whether or not they are still there."""
        return list(self._below(str(folder))) if self.is_listed else []

    def has_below(self, package: str) -> bool:
        """Whether `below` finds anything."""
        return bool(self._folders_of(package))

    def _folders_of(self, package: str) -> set[str]:
        """The folders, with files of ours, that a package may be."""
        parts = package.replace(".", os.sep)
        folders = {f"{self.root}{os.sep}{parts}", f"{self.root}{os.sep}src{os.sep}{parts}"}
        file = self.path_of(package)
        if file is not None and file.name == "__init__.py":
            folders.add(str(file.parent))
        folders.discard(str(self.root))
        return folders & self._with_files()

    def _with_files(self) -> set[str]:
        """The folders in which, or in whose folders, files are."""
        if self._filled is None:
            self._filled = set()
            for path in self.all():
                folder = os.path.dirname(path)  # noqa: PTH120 - of every file
                while len(folder) > len(str(self.root)) and folder not in self._filled:
                    self._filled.add(folder)
                    folder = os.path.dirname(folder)  # noqa: PTH120
        return self._filled

    def _below(self, folder: str) -> Iterator[Path]:
        files = self.all()
        prefix = f"{folder}{os.sep}"
        for position in range(bisect.bisect_left(files, Path(folder)), len(files)):
            path = files[position]
            if not str(path).startswith(prefix):
                return
            yield path

    def _is_below(self, path: Path) -> bool:
        try:
            relative = path.relative_to(self.root)
        except ValueError:
            return False
        return all(is_ours(part) for part in relative.parts[:-1])

    def _forget_names(self) -> None:
        self._names.clear()
        self._paths.clear()
        self._imports.clear()
        self._folders.clear()
        self._heads.clear()
        self._elsewhere = None
        self._filled = None

    # -- what their modules are called

    def module_name(self, path: Path) -> str:
        """Dotted name of the module in a file: from its outermost package, else its path below the project's root."""
        path = path.absolute()
        name = self._names.get(path)
        if name is None:
            prefix = self._prefix_of(path.parent)
            if prefix is None:
                prefix = _dotted(path.parent, self.root)
            parts = [prefix] if prefix else []
            if path.stem != "__init__":
                parts.append(path.stem)
            name = self._names[path] = ".".join(parts)
        return name

    def _prefix_of(self, folder: Path) -> str | None:
        """The dotted name of a folder that is a package; None where it is none."""
        if folder not in self._folders:
            found = None
            if (folder / "__init__.py").is_file():
                outer = None if folder.parent == folder else self._prefix_of(folder.parent)
                found = f"{outer}.{folder.name}" if outer else folder.name
            self._folders[folder] = found
        return self._folders[folder]

    def import_name(self, importer: str | None, module: str) -> str:
        """What ``import module`` means in a file: a project module's name, else the name as it is."""
        if importer is None:
            return module
        head, _, rest = module.partition(".")
        folder = os.path.dirname(importer)  # noqa: PTH120 - asked for every import of every file
        key = (folder, head)
        if key not in self._imports:
            self._imports[key] = self._imported(Path(importer).absolute().parent, head)
        name = self._imports[key]
        if name is None:
            return module
        return f"{name}.{rest}" if rest else name

    def absolute(self, path: Path, module: str, level: int, target: str) -> str:
        """The absolute dotted name of an import in a file; ``module``: what the file's module was called."""
        if not level:
            return self.import_name(str(path), target)
        parts = module.split(".")
        keep = len(parts) - level + (1 if path.name == "__init__.py" else 0)
        return ".".join([*parts[: max(keep, 0)], *([target] if target else [])])

    def _imported(self, folder: Path, head: str) -> str | None:
        """An absolute import finds a first-party module beside the file, then upwards, then in src/."""
        current = folder
        while True:
            found = _module_file(current, [head])
            if found is not None:
                return self.module_name(found)
            if current == self.root or current.parent == current:
                break
            current = current.parent
        found = _module_file(self.root / "src", [head])
        return None if found is None else self.module_name(found)

    def path_of(self, module: str) -> Path | None:
        """The file of a module; None when it is none of the project's."""
        if module not in self._paths:
            self._paths[module] = self._find(module)
        return self._paths[module]

    def _find(self, module: str) -> Path | None:
        parts = module.split(".")
        for base in (self.root, self.root / "src"):
            if self._holds(base, parts[0]):
                found = _module_file(base, parts)
                if found is not None:
                    return found
        parent, _, last = module.rpartition(".")
        if parent:
            package = self.path_of(parent)
            if package is not None and package.name == "__init__.py":
                return _module_file(package.parent, [last])
        return self._found_by_list().get(module)

    def _holds(self, base: Path, head: str) -> bool:
        """Whether a folder holds a module or a folder of that name; of most imports, as of torch's, it does not."""
        if (base, head) not in self._heads:
            place = os.path.join(base, head)  # noqa: PTH118
            self._heads[base, head] = os.path.exists(place) or os.path.exists(f"{place}.py")  # noqa: PTH110
        return self._heads[base, head]

    def _found_by_list(self) -> dict[str, Path]:
        """Modules whose names do not say where they are: packages below other folders than the root and ``src``, and
        files in folders with a dot in their names."""
        if self._elsewhere is None:
            self._elsewhere = {}
            root = len(str(self.root))
            for path in self.all():
                if path.name == "__init__.py":
                    is_wanted = "." not in self.module_name(path)
                else:
                    is_wanted = "." in os.path.dirname(path)[root:]  # noqa: PTH120 - of every file
                if is_wanted:
                    self._elsewhere.setdefault(self.module_name(path), path)
        return self._elsewhere

    def split(self, name: str) -> tuple[str, Path, list[str]] | None:
        """The longest leading part of a dotted name that is a module, its file, and the rest."""
        parts = name.split(".")
        for length in range(len(parts), 0, -1):
            module = ".".join(parts[:length])
            path = self.path_of(module)
            if path is not None:
                return module, path, parts[length:]
        return None


def _dotted(folder: Path, root: Path) -> str:
    try:
        return ".".join(folder.relative_to(root).parts)
    except ValueError:
        return ""


def _module_file(base: Path, parts: list[str]) -> Path | None:
    # Asked for every name that is imported: a Path for each would take longer than the answer.
    folder = os.path.join(base, *parts)  # noqa: PTH118
    package = os.path.join(folder, "__init__.py")  # noqa: PTH118
    if os.path.isfile(package):  # noqa: PTH113
        return Path(package)
    file = f"{folder}.py"
    return Path(file) if os.path.isfile(file) else None  # noqa: PTH113
