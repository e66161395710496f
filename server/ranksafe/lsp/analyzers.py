"""Makes an analyzer: the editor's settings on top of the project's configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ranksafe.checker.analysis import Analyzer
from ranksafe.checker.configuration import Configuration, LoadedConfiguration, parse_assumption
from ranksafe.checker.registry import Registry
from ranksafe.launch.context import LaunchContext, Launcher
from ranksafe.launch.detect import Statement, build_launch_context
from ranksafe.launch.versions import installed_versions
from ranksafe.lsp.options import Settings
from ranksafe.semantics.project.index import ProjectIndex

EDITOR_SETTINGS: Final = "editor settings"


def make_analyzer(
    registry: Registry,
    loaded: LoadedConfiguration,
    settings: Settings,
    interpreter: Path | None,
    index: ProjectIndex | None,
) -> Analyzer:
    """The analyzer for the files that share all of these."""
    configuration = _configured(loaded.configuration, settings)
    return Analyzer(registry, configuration, _launch(loaded, settings, interpreter), index)


def _configured(configuration: Configuration, settings: Settings) -> Configuration:
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
