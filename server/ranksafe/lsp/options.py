"""What the client tells the server: initializationOptions and the settings of section ``ranksafe``.

Nothing here is trusted to have the right shape. What reaches a process (`ClientOptions.python`,
`ClientOptions.run_environment`, `ClientOptions.ssh_config_file`) or starts one is read from initializationOptions
alone, which the client fills from the user's own settings; ``workspace/configuration`` may carry a workspace's values
and sets analysis keys only.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from ranksafe.checker.configuration import AnalysisKeys
from ranksafe.localization import Translated
from ranksafe.settings import Expected, Flag, Text, read

_A_PATH = Translated("a path", "路径")


def _user_path(text: str) -> Path | None:
    try:
        return Path(text).expanduser() if text else None
    except RuntimeError:  # the home folder of nobody
        return None


def _absolute(text: str) -> Path | None:
    """A relative path would lead into the workspace."""
    path = _user_path(text)
    return path if path is not None and path.is_absolute() else None


ChosenPath = Annotated[Path, Expected(_A_PATH, written=str, convert=_user_path)]
AbsolutePath = Annotated[Path, Expected(_A_PATH, written=str, convert=_absolute)]
Environment = Annotated[
    dict[str, str], Expected(Translated("an object of strings", "值为字符串的对象"))
]


def default_state_directory() -> Path:
    """Where this user's programs keep what they remember, by the platform's custom."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / "ranksafe"


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """initializationOptions."""

    locale: Text | None = None
    trusted: Flag = False
    python: ChosenPath | None = None
    """The interpreter of the user's project, chosen by the user."""
    state_directory: ChosenPath = field(default_factory=default_state_directory)
    run_environment: Environment = field(default_factory=dict)
    ssh_config_file: AbsolutePath | None = None
    """For ssh, in place of ``~/.ssh/config``; used in trusted workspaces only."""
    rehearse_on_save: Flag = False
    """Rehearse a script again when it, or what it imports, is saved; in trusted workspaces only."""
    shows_runs: Flag = False
    """The client tells the user how a run ended, so the server need not."""
    settings: AnalysisKeys = field(default_factory=AnalysisKeys)


def read_options(value: object) -> ClientOptions:
    """The options in ``value``; what has the wrong type counts as not given."""
    given = {_hyphenated(key): one for key, one in as_mapping(value).items()}
    settings = as_mapping(given.get("settings"))
    given["run-environment"] = as_mapping(given.get("run-environment"))
    given["locale"] = given.get("locale") or settings.get("language")
    return replace(read(ClientOptions, given)[0], settings=read_settings(settings))


def read_settings(value: object) -> AnalysisKeys:
    """The analysis settings in ``value`` (section ``ranksafe``)."""
    # An empty list is an editor's default.
    return read(AnalysisKeys, {key: one for key, one in as_mapping(value).items() if one != []})[0]


def _hyphenated(key: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", key)


def as_mapping(value: object) -> Mapping[str, Any]:
    """``value`` if it is a JSON object, else an empty one. pygls hands some objects over as named tuples."""
    if isinstance(value, Mapping):
        return value
    fields = getattr(value, "_asdict", None)
    return fields() if callable(fields) else {}
