"""Makes an analyzer: the editor's settings on top of the project's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ranksafe.checker.analysis import Analyzer
from ranksafe.checker.configuration import AnalysisKeys, LoadedConfiguration
from ranksafe.checker.registry import Registry
from ranksafe.launch.context import Fact
from ranksafe.launch.detect import build_launch_context
from ranksafe.launch.versions import installed_versions
from ranksafe.semantics.project.index import ProjectIndex

EDITOR_SETTINGS: Final = "editor settings"


def make_analyzer(
    registry: Registry,
    loaded: LoadedConfiguration,
    settings: AnalysisKeys,
    interpreter: Path | None,
    index: ProjectIndex | None,
    pinned: Mapping[str, Fact],
) -> Analyzer:
    """The analyzer for the files that share all of these."""
    launch = build_launch_context(
        settings.statement(EDITOR_SETTINGS),
        loaded.configuration.statement(loaded.source.name if loaded.source else ""),
        installed=installed_versions(interpreter) if interpreter is not None else None,
        pinned=pinned,
    )
    return Analyzer(registry, loaded.configuration.with_settings(settings), launch, index)
