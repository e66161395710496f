"""Calls that remove or rename a file or directory and fail where another rank has done so."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.caught import is_caught
from ranksafe_rules._shared.every_rank import runs_on_every_rank
from ranksafe_rules._shared.rank_turns import ranks_take_turns
from ranksafe_rules._shared.rank_words import names_behind
from ranksafe_rules.checkpoints.directories import is_path
from ranksafe_rules.checkpoints.listed_paths import is_same_or_listed

_REMOVERS: Final = {
    "shutil.rmtree": ("path", 0),
    "os.remove": ("path", 0),
    "os.unlink": ("path", 0),
    "os.rmdir": ("path", 0),
    "os.removedirs": ("name", 0),
    "os.rename": ("src", 0),
    "os.renames": ("old", 0),
    "os.replace": ("src", 0),
    "shutil.move": ("src", 0),
}
"""Functions after which the path is gone, so that a second call fails (Python 3.11)."""
_RMTREE: Final = "shutil.rmtree"
_SURVIVES: Final[dict[str, dict[str, int | None]]] = {
    _RMTREE: {"ignore_errors": 1, "onerror": 2, "onexc": None},
    "unlink": {"missing_ok": 0},
}
"""Arguments with which a call goes on where the path is gone."""
_PATH_METHODS: Final = ("unlink", "rmdir")
_LOOKS_FIRST: Final = re.compile(r"exists?|is_?dir|is_?file|is_?link", re.IGNORECASE)
_ERRORS: Final = frozenset(
    {"FileNotFoundError", "OSError", "IOError", "EnvironmentError", "Exception", "BaseException"}
)
MENTIONS: Final = frozenset(
    {"rmtree", "os.remove", "unlink", "rmdir", "os.rename", "os.replace", "shutil.move"}
)


@dataclass(frozen=True, slots=True)
class Removal:
    """One call that removes or renames one path on every rank."""

    call: ast.Call
    path: ast.expr
    looks_first: bool
    """Whether it stands below ``if os.path.exists(path)``."""
    is_unlink: bool = False
    """Whether it is ``Path.unlink``, which knows ``missing_ok``."""


def racing_removals(module: Module, launch: LaunchContext) -> Iterator[Removal]:
    """Removals of one path by all ranks, in source order."""
    found = [removal for removal in removals(module) if _races(module, removal, launch)]
    yield from sorted(found, key=lambda removal: module.order_of(removal.call))


def removals(module: Module) -> Iterator[Removal]:
    """The calls of the file that remove a path and mind if it is gone."""
    for name, (parameter, position) in _REMOVERS.items():
        for call in module.calls(name):
            path = module.argument_node(call, parameter, position)
            if path is not None and _minds(module, call, name):
                yield Removal(call, path, _looks_first(module, call))
    for method in _PATH_METHODS:
        for call in module.calls_written(method):
            if isinstance(call.func, ast.Attribute) and is_path(module, call.func.value):
                if _minds(module, call, method):
                    looks_first = _looks_first(module, call)
                    yield Removal(call, call.func.value, looks_first, method == "unlink")


def _minds(module: Module, call: ast.Call, name: str) -> bool:
    """Whether the call fails where the path is gone."""
    given = [
        module.argument(call, parameter, position)
        for parameter, position in _SURVIVES.get(name, {}).items()
    ]
    return all(value is None or value.only_constant() is False for value in given)


def _races(module: Module, removal: Removal, launch: LaunchContext) -> bool:
    call = removal.call
    return (
        not is_caught(module, call, _ERRORS)
        and runs_on_every_rank(module, call, launch)
        and is_same_or_listed(module, removal.path)
        and not ranks_take_turns(module, call)
    )


def _looks_first(module: Module, call: ast.Call) -> bool:
    return any(
        _LOOKS_FIRST.search(word)
        for guard in module.guards(call)
        for word in names_behind(module, guard.test)
    )
