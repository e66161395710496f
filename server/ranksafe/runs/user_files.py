"""The user's own settings of hosts and clusters: TOML files in one folder of theirs, and nowhere else.

A file has a table for each host or cluster. No file of a workspace can name a host, an interpreter or an account.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from ranksafe.localization import Translated
from ranksafe.runs.errors import RunNotPossible
from ranksafe.settings import Expected, parse_toml, read

T = TypeVar("T")

Environment = Annotated[
    str,
    Expected(
        Translated(
            en="the name or folder of an environment in quotes", zh_cn="带引号的环境名称或文件夹"
        ),
        # What could be taken for an option, or cannot be an argument.
        pattern=r"[^-\0][^\0]*",
    ),
]
"""Of conda."""


def user_file(name: str) -> Path:
    """``ranksafe/NAME`` under XDG_CONFIG_HOME, ``~/.config`` where that is not set or not absolute."""
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(configured) if Path(configured).is_absolute() else Path.home() / ".config"
    return base / "ranksafe" / name


def read_tables(path: Path) -> dict[str, Any]:
    """What a file says; empty where there is none. Raises RunNotPossible when it cannot be understood."""
    try:
        return parse_toml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise not_understood(path, reason) from error


def names_in(path: Path) -> list[str]:
    """What a file describes, perhaps not as it should be; nothing where it cannot be understood."""
    try:
        return list(read_tables(path))
    except RunNotPossible:
        return []


def add_table(path: Path, name: str, values: Mapping[str, str]) -> Path:
    """Describe one more host or cluster; what the file says stays as it is, comments included. Returns the file.

    Raises RunNotPossible when it cannot be understood or written.
    """
    import tomlkit

    if name in read_tables(path):
        return path
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        document = tomlkit.parse(text)
        document[name] = tomlkit.item(dict(values))
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Whoever keeps such files elsewhere has a link here.
        real = path.resolve()
        written = real.with_suffix(".new")
        written.write_text(tomlkit.dumps(document), encoding="utf-8")
        written.replace(real)
    except OSError as error:
        raise RunNotPossible(
            _NOT_WRITTEN.filled(path=path, reason=error.strerror or error)
        ) from error
    return path


def read_table(cls: type[T], path: Path, name: str, table: object, one_of: Sequence[str]) -> T:
    """What the table ``name`` of a file says. Raises RunNotPossible when anything in it is not as it should be.

    At most one of the keys ``one_of`` can be there.
    """
    if not isinstance(table, dict):
        raise not_understood(path, _NO_TABLE.filled(name=name))
    described, problems = read(cls, table, name)
    if problems:
        raise not_understood(path, problems[0])
    choices = [key for key in one_of if key in table]
    if len(choices) > 1:
        raise not_understood(path, _ONE_OF.filled(name=name, keys=", ".join(choices)))
    return described


def not_understood(path: Path, reason: object) -> RunNotPossible:
    """The error that names the file."""
    return RunNotPossible(_NOT_UNDERSTOOD.filled(path=path, reason=reason))


_NOT_UNDERSTOOD: Final = Translated(
    en="{path} cannot be understood: {reason}", zh_cn="无法理解 {path}：{reason}"
)
_NO_TABLE: Final = Translated(
    en="{name} is not a table: [{name}], then one key in each line",
    zh_cn="{name} 不是表：请写 [{name}]，其后每行一个键",
)
_ONE_OF: Final = Translated(
    en="[{name}] has {keys}, and only one of them can be",
    zh_cn="[{name}] 同时有 {keys}，只能保留其中一个",
)
_NOT_WRITTEN: Final = Translated(
    en="{path} cannot be written: {reason}", zh_cn="无法写入 {path}：{reason}"
)
