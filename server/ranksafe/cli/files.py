"""Which files to check: the ones named, and the Python files below the folders named."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ranksafe.checker.configuration import (
    Configuration,
    LoadedConfiguration,
    load_configuration,
)
from ranksafe.cli.terminal import note
from ranksafe.localization import Language, Translated

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


def find_files(
    paths: Iterable[Path], configurations: Configurations, language: Language
) -> list[Path]:
    """Named files as they are, whatever their names; below named folders every Python file that is not excluded.

    Each file once, in the order of the arguments and sorted below folders. A folder below them that cannot be read is
    named on stderr and left out. Raises FileNotFoundError, and OSError for a named folder that cannot be read.
    """

    def left_out(error: OSError) -> None:
        said = _LEFT_OUT.filled(path=error.filename, reason=error.strerror or error)
        note(said.in_language(language))

    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            for file in _below(path, configurations, left_out):
                found.setdefault(file)
        elif path.exists():
            found.setdefault(path)
        else:
            raise FileNotFoundError(str(path))
    return list(found)


def _below(
    folder: Path, configurations: Configurations, left_out: Callable[[OSError], None]
) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        # Whoever named it must not take it for checked.
        if error.filename == str(folder):
            raise error
        left_out(error)

    for root, folders, files in os.walk(folder, onerror=refuse):
        here = Path(root)
        configuration = configurations.of_folder(here).configuration
        folders[:] = sorted(name for name in folders if not configuration.excludes(here / name))
        yield from _python_files(here, files, configuration)


def _python_files(
    folder: Path, names: Iterable[str], configuration: Configuration
) -> Iterator[Path]:
    for name in sorted(names):
        if name.endswith(SUFFIXES):
            path = folder / name
            if not configuration.exclude or not configuration.excludes(path):
                yield path
