"""Which versions of a library a program can meet: by what is known of its environment, and by what it imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from packaging.version import Version
from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.module import Module

_REMOVED: Final = {"torch": {"torch._six": Version("2.0")}}
"""Distribution to modules of it, and the first version without them (pytorch/pytorch#94709)."""


def runs_before(module: Module, launch: LaunchContext, distribution: str, limit: Version) -> bool:
    """Whether the program meets no version from ``limit`` on: it is known to have an older one, or, where no version is
    known, it imports what later ones do not have."""
    return launch.is_before(distribution, limit) or (
        launch.version(distribution) is None
        and any(
            first <= limit and _is_imported(module, removed)
            for removed, first in _REMOVED.get(distribution, {}).items()
        )
    )


def _is_imported(module: Module, removed: str) -> bool:
    """Whether the file, or one that it imports, cannot be imported without a module."""
    return any(
        name == removed or name.startswith(f"{removed}.")
        for file in module.imported_saying(removed)
        for statement in file.tree.body
        for name in _named(statement)
    )


def _named(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Import):
        yield from (item.name for item in statement.names)
    elif isinstance(statement, ast.ImportFrom) and not statement.level and statement.module:
        yield statement.module
        yield from (f"{statement.module}.{item.name}" for item in statement.names)
