"""The user's own settings of hosts and clusters: TOML files in one folder of theirs, and nowhere else."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def user_file(name: str) -> Path:
    """``ranksafe/NAME`` under XDG_CONFIG_HOME, ``~/.config`` where that is not set or not absolute."""
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(configured) if Path(configured).is_absolute() else Path.home() / ".config"
    return base / "ranksafe" / name


def read_tables(path: Path) -> dict[str, Any]:
    """What a file says; empty where there is none. Raises OSError or ValueError when it cannot be understood."""
    try:
        tables: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except RecursionError as error:  # tomllib's answer to brackets in brackets in brackets
        raise ValueError(str(error)) from error
    return tables
