"""What the user says of hosts: one file of the user's own, ``hosts.toml``; no workspace has a say in it.

[gpu-box]
interpreter = "~/envs/train/bin/python"   # the Python with torch; or one of
conda = "train"                           # a conda environment, by name or folder
command = ["uv", "run", "python"]         # what starts it: uv, a container, a wrapper
folder = "/scratch/me/ranksafe"           # where projects and runs are kept
lease-hours = 24                          # how long a run goes on when nobody comes back
patience-minutes = 15                     # how long a host that was lost is sought again
project-limit-mb = 500                    # larger projects are not sent
despite-slurm = false                     # run past the scheduler of a cluster's node
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ranksafe.localization import Translated
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.user_files import read_tables, user_file

DEFAULT_LEASE_HOURS: Final = 12.0
DEFAULT_PATIENCE_MINUTES: Final = 15.0
DEFAULT_PROJECT_LIMIT_MB: Final = 200
PYTHON_KEYS: Final = ("interpreter", "conda", "command")
"""Ways to name the Python of a host; at most one is used."""


@dataclass(frozen=True, slots=True)
class HostSettings:
    """Of one host."""

    interpreter: str | None = None
    """A path on the host, perhaps with ``~``. None, as are `conda` and `command`: found there."""
    conda: str | None = None
    """The name or prefix of a conda environment there."""
    command: tuple[str, ...] = ()
    """Words that start a Python there, given its arguments; no shell reads them."""
    folder: str | None = None
    """On the host; None: its user's cache folder."""
    lease_hours: float = DEFAULT_LEASE_HOURS
    patience_minutes: float = DEFAULT_PATIENCE_MINUTES
    project_limit_mb: float = DEFAULT_PROJECT_LIMIT_MB
    despite_slurm: bool = False

    @property
    def python(self) -> dict[str, Any] | None:
        """The user's choice, as `on_host.environments` reads it."""
        if self.command:
            return {"command": self.command}
        if self.conda is not None:
            return {"conda": self.conda}
        return None if self.interpreter is None else {"program": self.interpreter}


def settings_file() -> Path:
    """``ranksafe/hosts.toml`` under XDG_CONFIG_HOME, ``~/.config`` where that is not set or not absolute."""
    return user_file("hosts.toml")


def settings_of(host: str) -> HostSettings:
    """What the user says of ``host``. Raises RunNotPossible when the file cannot be understood."""
    path = settings_file()
    given = _read(path).get(host, {})
    if not isinstance(given, dict):
        raise _broken(path, _NO_TABLE.filled(host=host))
    for key, value in given.items():
        if key not in _KEYS:
            raise _broken(path, _UNKNOWN_KEY.filled(host=host, key=key, known=", ".join(_KEYS)))
        fits, wanted = _KEYS[key]
        if not fits(value):
            raise _broken(path, _WRONG_VALUE.filled(host=host, key=key, wanted=wanted))
    choices = [key for key in PYTHON_KEYS if key in given]
    if len(choices) > 1:
        raise _broken(path, _ONE_OF.filled(host=host, keys=", ".join(choices)))
    values = {key.replace("-", "_"): value for key, value in given.items()}
    if "command" in values:
        values["command"] = tuple(values["command"])
    return HostSettings(**values)


def named_hosts() -> list[str]:
    """The hosts that the file names; none where it cannot be read."""
    try:
        return list(_read(settings_file()))
    except RunNotPossible:
        return []


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_path(value: object) -> bool:
    return (
        isinstance(value, str) and bool(value) and not value.startswith("-") and "\0" not in value
    )


def _are_words(value: object) -> bool:
    """What can be started, and can have arguments: several words, the first of them no option."""
    if not isinstance(value, list) or len(value) < 2 or not _is_path(value[0]):
        return False
    return all(isinstance(word, str) and "\0" not in word for word in value)


def _is_amount(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 < value < math.inf


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


_A_PATH = Translated(en="a path in quotes", zh_cn="带引号的路径")
_AN_ENVIRONMENT = Translated(
    en="the name or folder of an environment in quotes", zh_cn="带引号的环境名称或文件夹"
)
_WORDS = Translated(
    en='a list of at least two words, such as ["uv", "run", "python"]',
    zh_cn='至少两个单词的列表，例如 ["uv", "run", "python"]',
)
_AMOUNT = Translated(en="a number above 0", zh_cn="大于 0 的数")
_FLAG = Translated(en="true or false", zh_cn="布尔值 true 或 false")
_KEYS: Final[dict[str, tuple[Callable[[object], bool], Translated]]] = {
    "interpreter": (_is_text, _A_PATH),
    "conda": (_is_path, _AN_ENVIRONMENT),
    "command": (_are_words, _WORDS),
    "folder": (_is_text, _A_PATH),
    "lease-hours": (_is_amount, _AMOUNT),
    "patience-minutes": (_is_amount, _AMOUNT),
    "project-limit-mb": (_is_amount, _AMOUNT),
    "despite-slurm": (_is_flag, _FLAG),
}
"""What a value has to be, and how that is said."""


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_tables(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise _broken(path, reason) from error


def _broken(path: Path, reason: object) -> RunNotPossible:
    return RunNotPossible(_BROKEN.filled(path=path, reason=reason))


_BROKEN = Translated(
    en="The settings of hosts in {path} cannot be understood: {reason}",
    zh_cn="无法理解 {path} 中的主机设置：{reason}",
)
_NO_TABLE = Translated(
    en="{host} is not a table: [{host}], then one key in each line",
    zh_cn="{host} 不是表：请写 [{host}]，其后每行一个键",
)
_UNKNOWN_KEY = Translated(
    en="[{host}] has no key {key}; there are {known}",
    zh_cn="[{host}] 没有键 {key}；可用的键：{known}",
)
_WRONG_VALUE = Translated(
    en="[{host}] {key} must be {wanted}", zh_cn="[{host}] {key} 必须是{wanted}"
)
_ONE_OF = Translated(
    en="[{host}] has {keys}, and only one of them can be",
    zh_cn="[{host}] 同时有 {keys}，只能保留其中一个",
)
