"""The analyzer for each part of the workspace: its configuration, its launch context, its project index.

The analysis is imported at first use: the client waits for the initialize reply.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ranksafe.checker.configuration import Configuration, LoadedConfiguration, load_configuration
from ranksafe.launch.context import Fact
from ranksafe.launch.interpreter import find_interpreter
from ranksafe.launch.pins import AskedFor, pinned_versions
from ranksafe.localization import Translated
from ranksafe.lsp.connection import Connection
from ranksafe.lsp.documents import Document
from ranksafe.lsp.messages import CONFIGURATION_PROBLEM, RULE_PROBLEM, UNKNOWN_SELECTOR
from ranksafe.lsp.workspace import Workspace

if TYPE_CHECKING:
    from ranksafe.checker.analysis import Analyzer
    from ranksafe.checker.registry import Registry
    from ranksafe.semantics.project.changes import Change
    from ranksafe.semantics.project.index import ProjectIndex


_Kind = tuple[Path | None, Path | None, Path | None, frozenset[Fact]]


@dataclass(slots=True)
class Projects:
    """Analyzers by configuration file, interpreter and the versions that are asked for."""

    _client: Connection
    _workspace: Workspace
    _registry: Registry | None = None
    _analyzers: dict[_Kind, Analyzer] = field(default_factory=dict)
    _loaded: dict[Path | None, LoadedConfiguration] = field(default_factory=dict)
    _pinned: dict[tuple[Path, Path], Mapping[str, Fact]] = field(default_factory=dict)
    _asked_for: dict[Path, AskedFor] = field(default_factory=dict)
    _told: set[Translated] = field(default_factory=set)
    _indexes: dict[Path, ProjectIndex] = field(default_factory=dict)

    @property
    def registry(self) -> Registry:
        """The rules. Plug-ins only in a trusted workspace."""
        if self._registry is None:
            from ranksafe.checker.registry import Registry

            self._registry = Registry.load(entry_points=self._workspace.trusted)
            for problem in self._registry.problems:
                self._tell(RULE_PROBLEM.filled(problem=problem))
        return self._registry

    def analyzer_for(self, path: Path | None) -> Analyzer:
        """The analyzer that serves a file; None: a document without a file."""
        loaded = self.configuration_for(path)
        folder = self._workspace.folder_of(path)
        interpreter = self.interpreter_for(folder)
        pinned = self._pinned_for(path, folder)
        key = (loaded.source, interpreter, folder, frozenset(pinned.values()))
        if key not in self._analyzers:
            from ranksafe.lsp.analyzers import make_analyzer

            self._analyzers[key] = make_analyzer(
                self.registry,
                loaded,
                self._workspace.settings,
                interpreter,
                self.index_of(folder),
                pinned,
            )
        return self._analyzers[key]

    def interpreter_for(self, folder: Path | None) -> Path | None:
        """The project's Python, whose packages are read: the user's choice, else the one found. Never started."""
        if self._workspace.options.python is not None:
            return self._workspace.options.python
        return find_interpreter(folder, os.environ) if folder is not None else None

    def _pinned_for(self, path: Path | None, folder: Path | None) -> Mapping[str, Fact]:
        """The versions that the files around a file ask for, read once per folder."""
        if path is None or folder is None:
            return {}
        key = (path.parent, folder)
        if key not in self._pinned:
            self._pinned[key] = pinned_versions(*key, self._asked_for)
        return self._pinned[key]

    def forget(self, *, rules: bool = False) -> None:
        """Read configurations and installed versions anew when they are needed next; with ``rules`` the rules too."""
        self._analyzers.clear()
        folders = set(self._workspace.folders)
        # They know nothing of configurations and versions.
        self._indexes = {
            folder: index for folder, index in self._indexes.items() if folder in folders
        }
        self._loaded.clear()
        self._pinned.clear()
        self._asked_for.clear()
        self._told.clear()
        if rules:
            self._registry = None

    # -- what the project's files say to each other

    def index_of(self, folder: Path | None) -> ProjectIndex | None:
        """The index over a workspace folder; None for a document outside of all."""
        if folder is None:
            return None
        index = self._indexes.get(folder)
        if index is None:
            from ranksafe.semantics.project.index import ProjectIndex
            from ranksafe.semantics.project.summary_store import projects_folder

            index = ProjectIndex(folder, store_folder=projects_folder(os.environ))
            self._indexes[folder] = index
            for document in self._workspace.documents:
                if document.path is not None and document.path.is_relative_to(folder):
                    index.update(document.path, document.text)
        return index

    def indexes(self) -> list[ProjectIndex]:
        """The indexes over all open folders."""
        found = (self.index_of(folder) for folder in self._workspace.folders)
        return [index for index in found if index is not None]

    def indexes_of(self, path: Path) -> Iterator[ProjectIndex]:
        """The indexes over the folders around a file."""
        return (index for index in self.indexes() if path.is_relative_to(index.root))

    def update(self, path: Path, text: str | None) -> list[tuple[ProjectIndex, Change]]:
        """Take over the text of an open file, or (None) look at it on disk again; what changed by it."""
        changes = [(index, index.update(path, text)) for index in self.indexes_of(path)]
        return [(index, change) for index, change in changes if change]

    def update_ahead(self, path: Path, text: str) -> None:
        """Do, with pauses, what of `update` takes long where a text is long."""
        for index in self.indexes_of(path):
            index.update_ahead(path, text)

    def known_below(self, folder: Path) -> list[Path]:
        """The files that the indexes know in a folder, which may be gone."""
        return [path for index in self.indexes_of(folder) for path in index.known_below(folder)]

    def affected(self, changes: Iterable[tuple[ProjectIndex, Change]]) -> list[Document]:
        """The open documents that may have other findings after the changes."""
        by_index: dict[ProjectIndex, list[Change]] = {}
        for index, change in changes:
            by_index.setdefault(index, []).append(change)
        found: list[Document] = []
        for index, made in by_index.items():
            paths = index.affected(made, self._open_paths(index))
            found += [document for document in self._workspace.documents if document.path in paths]
        return found

    def following(self) -> Iterator[int]:
        """Find out what the open documents depend on, in short steps, so that `affected` costs little."""
        for document in list(self._workspace.documents):
            if document.path is not None:
                for index in self.indexes_of(document.path):
                    yield from index.closure_steps(document.path)

    def has_open_dependents(self, document: Document) -> bool:
        """Whether an open document is known to depend on another one."""
        path = document.path
        return path is not None and any(
            index.depends(other, path)
            for index in self.indexes_of(path)
            for other in self._open_paths(index)
        )

    def _open_paths(self, index: ProjectIndex) -> list[Path]:
        paths = (document.path for document in self._workspace.documents)
        return [path for path in paths if path is not None and path.is_relative_to(index.root)]

    def configuration_for(self, path: Path | None) -> LoadedConfiguration:
        """The configuration that holds for a file, read once per folder; its problems are told then."""
        key = path.parent if path is not None else self._workspace.first_folder
        if key not in self._loaded:
            default = LoadedConfiguration(Configuration())
            self._loaded[key] = default if key is None else load_configuration(key)
            self._report_problems(self._loaded[key])
        return self._loaded[key]

    def _report_problems(self, loaded: LoadedConfiguration) -> None:
        for problem in loaded.problems:
            where = (
                problem.path.name if problem.line is None else f"{problem.path.name}:{problem.line}"
            )
            self._tell(CONFIGURATION_PROBLEM.filled(file=where, problem=problem.message))
        settings = self._workspace.settings
        for selector in (*settings.selectors(), *loaded.configuration.selectors()):
            if self.registry.names_nothing(selector):
                self._tell(UNKNOWN_SELECTOR.filled(selector=selector))

    def _tell(self, message: Translated) -> None:
        if message not in self._told:
            self._told.add(message)
            self._client.warn(message)
