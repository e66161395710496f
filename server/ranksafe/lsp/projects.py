"""The analyzer for each part of the workspace: its configuration, its launch context, its project index."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ranksafe.checker.analysis import Analyzer
from ranksafe.checker.configuration import (
    Configuration,
    LoadedConfiguration,
    load_configuration,
    parse_assumption,
)
from ranksafe.checker.registry import Registry
from ranksafe.launch.context import LaunchContext, Launcher
from ranksafe.launch.detect import Statement, build_launch_context
from ranksafe.launch.interpreter import find_interpreter
from ranksafe.launch.versions import installed_versions
from ranksafe.lsp.messages import CONFIGURATION_PROBLEM, RULE_PROBLEM, UNKNOWN_SELECTOR
from ranksafe.semantics.project_index import ProjectIndex

if TYPE_CHECKING:
    from ranksafe.lsp.options import Settings
    from ranksafe.lsp.server import RanksafeServer

EDITOR_SETTINGS = "editor settings"


class Projects:
    """Analyzers by configuration file and interpreter."""

    def __init__(self, server: RanksafeServer) -> None:
        self._server = server
        self._registry: Registry | None = None
        self._analyzers: dict[tuple[Path | None, Path | None, Path | None], Analyzer] = {}
        self._loaded: dict[Path | None, LoadedConfiguration] = {}
        self._told: set[str] = set()
        self._indexes: dict[Path, ProjectIndex] = {}

    @property
    def registry(self) -> Registry:
        """The rules. Plug-ins only in a trusted workspace (DESIGN, invariant 8)."""
        if self._registry is None:
            self._registry = Registry.load(entry_points=self._server.trusted)
            for problem in self._registry.problems:
                self._tell(RULE_PROBLEM.filled(problem=problem).in_language(self._server.language))
        return self._registry

    def analyzer_for(self, path: Path | None) -> Analyzer:
        """The analyzer that serves a file; None: a document without a file."""
        loaded = self._configuration_for(path)
        folder = self._server.folder_of(path)
        interpreter = self.interpreter_for(folder)
        key = (loaded.source, interpreter, folder)
        if key not in self._analyzers:
            settings = self._server.settings
            self._analyzers[key] = Analyzer(
                self.registry,
                _with_settings(loaded.configuration, settings),
                _launch(loaded, settings, interpreter),
                self._index_of(folder),
            )
        return self._analyzers[key]

    def interpreter_for(self, folder: Path | None) -> Path | None:
        """The project's Python, whose packages are read: the user's choice, else the one found. Never started."""
        if self._server.options.python is not None:
            return self._server.options.python
        return find_interpreter(folder, os.environ) if folder is not None else None

    def forget(self, *, rules: bool = False) -> None:
        """Read configurations and installed versions anew when they are needed next; with ``rules`` the rules too."""
        self._analyzers.clear()
        self._indexes.clear()
        self._loaded.clear()
        self._told.clear()
        if rules:
            self._registry = None

    def files_changed(self, paths: Iterable[Path]) -> bool:
        """Python files changed on disk; whether findings in other files may have changed by it."""
        changed = False
        for path in paths:
            for folder, index in self._indexes.items():
                if path.is_relative_to(folder):
                    changed = index.update(path, None) or changed
        return changed

    def _index_of(self, folder: Path | None) -> ProjectIndex | None:
        """The index over a workspace folder; None for a document outside of all."""
        if folder is None:
            return None
        if folder not in self._indexes:
            self._indexes[folder] = ProjectIndex(folder)
        return self._indexes[folder]

    def _configuration_for(self, path: Path | None) -> LoadedConfiguration:
        key = path.parent if path is not None else self._server.first_folder()
        if key not in self._loaded:
            loaded = (
                LoadedConfiguration(Configuration()) if key is None else load_configuration(key)
            )
            self._loaded[key] = loaded
            self._report_problems(loaded)
        return self._loaded[key]

    def _report_problems(self, loaded: LoadedConfiguration) -> None:
        language = self._server.language
        for problem in loaded.problems:
            where = (
                problem.path.name if problem.line is None else f"{problem.path.name}:{problem.line}"
            )
            message = CONFIGURATION_PROBLEM.filled(file=where, problem=problem.message)
            self._tell(message.in_language(language))
        settings = self._server.settings
        for selector in (*settings.select, *settings.ignore, *loaded.configuration.selectors()):
            if self.registry.names_nothing(selector):
                self._tell(UNKNOWN_SELECTOR.filled(selector=selector).in_language(language))

    def _tell(self, message: str) -> None:
        if message not in self._told:
            self._told.add(message)
            self._server.warn(message)


def _with_settings(configuration: Configuration, settings: Settings) -> Configuration:
    return configuration.with_settings(
        select=settings.select or None,
        ignore=settings.ignore or None,
        preview=settings.preview,
        gpus=settings.gpus,
        launcher=_launcher(settings),
        assume=_assumptions(settings),
    )


def _launch(
    loaded: LoadedConfiguration, settings: Settings, interpreter: Path | None
) -> LaunchContext:
    configuration = loaded.configuration
    return build_launch_context(
        Statement(
            EDITOR_SETTINGS, settings.gpus, _launcher(settings), dict(_assumptions(settings))
        ),
        Statement(
            loaded.source.name if loaded.source else "",
            configuration.gpus,
            configuration.launcher,
            dict(configuration.assume),
        ),
        installed=installed_versions(interpreter) if interpreter is not None else None,
    )


def _assumptions(settings: Settings) -> list[tuple[str, str]]:
    parsed = (parse_assumption(text) for text in settings.assume)
    return [assumption for assumption in parsed if assumption is not None]


def _launcher(settings: Settings) -> Launcher | None:
    known = {launcher.value: launcher for launcher in Launcher}
    return known.get(settings.launcher or "")
