"""The launch context from all that says something of it: command line, settings, files, installed packages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ranksafe.launch.context import Fact, LaunchContext, Launcher


@dataclass(frozen=True, slots=True)
class Statement:
    """What one place says of the launch; None and {} where it says nothing."""

    source: str
    """The place, in words a user knows: ``command line``, ``editor settings``, ``pyproject.toml``."""
    gpus: int | None = None
    launcher: Launcher | None = None
    versions: Mapping[str, str] = field(default_factory=dict)


def build_launch_context(
    *statements: Statement,
    installed: Mapping[str, Fact] | None = None,
    pinned: Mapping[str, Fact] | None = None,
) -> LaunchContext:
    """The launch context; an earlier statement wins over a later one, all of them over the installed versions, and
    these over the ones that the project asks for."""
    gpus: int | None = None
    launcher: Launcher | None = None
    versions: dict[str, str] = {}
    sources: dict[str, str] = {}
    for statement in statements:
        if gpus is None and statement.gpus is not None:
            gpus = statement.gpus
            sources["gpus"] = statement.source
        if launcher is None and statement.launcher not in (None, Launcher.UNKNOWN):
            launcher = statement.launcher
            sources["launcher"] = statement.source
        for name, version in statement.versions.items():
            if name not in versions:
                versions[name] = version
                sources[name] = statement.source
    for name, fact in {**(pinned or {}), **(installed or {})}.items():
        if name not in versions:
            versions[name] = fact.value
            sources[name] = fact.source
    return LaunchContext(
        gpus=gpus,
        launcher=Launcher.UNKNOWN if launcher is None else launcher,
        versions=versions,
        sources=sources,
    )
