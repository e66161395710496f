"""What the client tells the server: initializationOptions and the settings of section ``ranksafe``.

Nothing here is trusted to have the right shape. What reaches a process (`ClientOptions.python`,
`ClientOptions.run_environment`, `ClientOptions.ssh_config_file`) is read from initializationOptions alone, which the
client fills from the user's own settings; ``workspace/configuration`` may carry a workspace's values and sets analysis
keys only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Settings:
    """The editor's analysis settings; None and empty mean: not set, the project's configuration decides."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    preview: bool | None = None
    gpus: int | None = None
    launcher: str | None = None
    """As given: `ranksafe.lsp.projects` knows which there are."""
    assume: tuple[str, ...] = ()
    """``distribution==version``."""


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """initializationOptions."""

    locale: str | None = None
    trusted: bool = False
    python: Path | None = None
    """The interpreter of the user's project, chosen by the user."""
    state_directory: Path = field(default_factory=lambda: default_state_directory())
    run_environment: Mapping[str, str] = field(default_factory=dict)
    ssh_config_file: Path | None = None
    """For ssh, in place of ``~/.ssh/config``; used in trusted workspaces only."""
    settings: Settings = Settings()


def read_options(value: object) -> ClientOptions:
    """The options in ``value``; what has the wrong type counts as not given."""
    given = as_mapping(value)
    settings = as_mapping(given.get("settings"))
    environment = as_mapping(given.get("runEnvironment"))
    state = given.get("stateDirectory")
    python = given.get("python")
    return ClientOptions(
        locale=_text(given.get("locale")) or _text(settings.get("language")),
        trusted=given.get("trusted") is True,
        python=Path(python).expanduser() if isinstance(python, str) and python else None,
        state_directory=Path(state)
        if isinstance(state, str) and state
        else default_state_directory(),
        run_environment={key: text for key, text in environment.items() if isinstance(text, str)},
        ssh_config_file=_absolute(given.get("sshConfigFile")),
        settings=read_settings(settings),
    )


def read_settings(value: object) -> Settings:
    """The analysis settings in ``value`` (section ``ranksafe``)."""
    given = as_mapping(value)
    gpus = given.get("gpus")
    preview = given.get("preview")
    return Settings(
        select=_texts(given.get("select")),
        ignore=_texts(given.get("ignore")),
        preview=preview if isinstance(preview, bool) else None,
        gpus=gpus if isinstance(gpus, int) and not isinstance(gpus, bool) and gpus > 0 else None,
        launcher=_text(given.get("launcher")),
        assume=_texts(given.get("assume")),
    )


def default_state_directory() -> Path:
    """Where this user's programs keep what they remember, by the platform's custom."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / "ranksafe"


def as_mapping(value: object) -> Mapping[str, Any]:
    """``value`` if it is a JSON object, else an empty one. pygls hands some objects over as named tuples."""
    if isinstance(value, Mapping):
        return value
    fields = getattr(value, "_asdict", None)
    return fields() if callable(fields) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _absolute(value: object) -> Path | None:
    """A relative path would lead into the workspace."""
    path = Path(value).expanduser() if isinstance(value, str) and value else None
    return path if path is not None and path.is_absolute() else None


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        return ()
    return tuple(item for item in value if isinstance(item, str))
