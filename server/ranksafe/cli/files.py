"""Which files to check: the ones named, and the Python files below the folders named."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ranksafe.checker.configuration import LoadedConfiguration, load_configuration
from ranksafe.cli.gitignore import GitIgnore
from ranksafe.cli.other_projects import OtherProjects
from ranksafe.cli.terminal import note
from ranksafe.localization import Language, Translated
from ranksafe.source.notebook import is_notebook

SUFFIXES = (".py",)
_LEFT_OUT = Translated("{path}: {reason}; left out", "{path}：{reason}；已跳过")


@dataclass(slots=True)
class Configurations:
    """The configuration of each file: the one given on the command line, else the nearest; read once per folder."""

    fixed: LoadedConfiguration | None = None
    _by_folder: dict[Path, LoadedConfiguration] = field(default_factory=dict)

    def of_folder(self, folder: Path) -> LoadedConfiguration:
        """The configuration that holds in a folder."""
        if self.fixed is not None:
            return self.fixed
        found = self._by_folder.get(folder)
        if found is None:
            found = self._by_folder[folder] = load_configuration(folder)
        return found

    def of_file(self, path: Path) -> LoadedConfiguration:
        """The configuration that holds for a file."""
        return self.of_folder(path.parent)

    def loaded(self) -> list[LoadedConfiguration]:
        """Every configuration read so far, each file once."""
        if self.fixed is not None:
            return [self.fixed]
        unique = {loaded.source: loaded for loaded in self._by_folder.values()}
        return list(unique.values())


@dataclass(slots=True)
class FoundFiles:
    """The files to check, and how many below the folders named are left out for a reason that may surprise."""

    files: list[Path] = field(default_factory=list)
    notebooks: int = 0
    """Notebooks below the folders; they are checked when they are named."""
    ignored: int = 0
    """Folders and Python files that ``.gitignore`` names."""
    of_others: int = 0
    """Folders below those named that hold another project's code."""


def find_files(
    paths: Iterable[Path],
    configurations: Configurations,
    language: Language,
    *,
    respect_gitignore: bool = True,
    force_exclude: bool = False,
) -> FoundFiles:
    """Named files as they are, whatever their names; below named folders every Python file that is not excluded.

    With ``force_exclude`` the configuration leaves out named files, too. Each file once, in the order of the arguments
    and sorted below folders. A folder below them that cannot be read is named on stderr and left out. Raises
    FileNotFoundError, and OSError for a named folder that cannot be read.
    """
    found: dict[Path, None] = {}
    left_out = FoundFiles()
    ignore = GitIgnore() if respect_gitignore else None
    for path in paths:
        if path.is_dir():
            for file in _Walk(path, configurations, language, ignore, left_out).files():
                found.setdefault(file)
        elif not path.exists():
            raise FileNotFoundError(str(path))
        elif not (force_exclude and _is_excluded(path, configurations)):
            found.setdefault(path)
    left_out.files = list(found)
    return left_out


def _is_excluded(path: Path, configurations: Configurations) -> bool:
    """Whether a walk from the working directory would not come to a file."""
    configuration = configurations.of_file(path).configuration
    here = Path.cwd()
    inside = path.absolute().relative_to(here) if path.absolute().is_relative_to(here) else path
    folders = () if inside.is_absolute() else inside.parents[:-1]
    return any(configuration.excludes(each) for each in (inside, *folders))


class _Walk:
    """The way through one named folder."""

    def __init__(
        self,
        folder: Path,
        configurations: Configurations,
        language: Language,
        ignore: GitIgnore | None,
        found: FoundFiles,
    ) -> None:
        self._folder = folder
        self._configurations = configurations
        self._language = language
        self._found = found
        # Whoever names a folder that git ignores wants it checked.
        is_ignored = ignore is not None and ignore.ignores_all_of(folder.absolute())
        self._ignore = None if is_ignored else ignore
        self._others = OtherProjects(folder)

    def files(self) -> Iterator[Path]:
        """The Python files to check, in order; counts what it leaves out."""
        for root, folders, names in os.walk(self._folder, onerror=self._refuse):
            here = Path(root)
            if here != self._folder and self._others.begin_in(here, names):
                self._found.of_others += 1
                folders.clear()
                continue
            configuration = self._configurations.of_folder(here).configuration
            folders[:] = sorted(
                name
                for name in folders
                if not configuration.excludes(here / name)
                and not self._is_ignored(here / name, is_folder=True)
            )
            for name in sorted(names):
                path = here / name
                if not is_notebook(path) and not name.endswith(SUFFIXES):
                    continue
                if configuration.exclude and configuration.excludes(path):
                    continue
                if self._is_ignored(path, is_folder=False):
                    continue
                if is_notebook(path):
                    self._found.notebooks += 1
                else:
                    yield path

    def _is_ignored(self, path: Path, *, is_folder: bool) -> bool:
        if self._ignore is None or not self._ignore.ignores(path.absolute(), is_folder=is_folder):
            return False
        self._found.ignored += 1
        return True

    def _refuse(self, error: OSError) -> None:
        # Whoever named it must not take it for checked.
        if error.filename == str(self._folder):
            raise error
        said = _LEFT_OUT.filled(path=error.filename, reason=error.strerror or error)
        note(said.in_language(self._language))
