"""Calls that make a directory and fail where another rank has made it."""

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
from ranksafe_rules._shared.rank_words import names_behind
from ranksafe_rules._shared.same_path import is_same_on_all_ranks
from ranksafe_rules.checkpoints.made_before import one_rank_made_it

MENTIONS: Final = frozenset({"mkdir", "makedirs"})
_MKDIR: Final = "os.mkdir"
_MAKEDIRS: Final = "os.makedirs"
_LOOKS_FIRST: Final = re.compile(r"exists?|is_?dir", re.IGNORECASE)
_CAUGHT: Final = frozenset(
    {"FileExistsError", "OSError", "IOError", "EnvironmentError", "Exception"}
)


@dataclass(frozen=True, slots=True)
class Creation:
    """One call that makes a directory on every rank."""

    call: ast.Call
    path: ast.expr
    looks_first: bool
    """Whether it stands below ``if not os.path.exists(path)``."""
    in_os: bool
    """``os.mkdir``, which knows no ``exist_ok``."""


def racing_creations(module: Module, launch: LaunchContext) -> Iterator[Creation]:
    """Directories that all ranks make under one name without minding that they exist, in source order."""
    found = [creation for creation in creations(module) if _races(module, creation, launch)]
    yield from sorted(found, key=lambda creation: module.order_of(creation.call))


def creations(module: Module) -> Iterator[Creation]:
    """The calls of the file that make a directory and mind if it exists."""
    for call in module.calls(_MKDIR, _MAKEDIRS):
        in_os = module.qualified_name(call.func) == _MKDIR
        path = module.argument_node(call, "path" if in_os else "name", 0)
        if path is not None and (in_os or _minds(module, call, 2)):
            yield Creation(call, path, _looks_first(module, call), in_os)
    for call in module.calls_written("mkdir"):
        if isinstance(call.func, ast.Attribute) and is_path(module, call.func.value):
            if _minds(module, call, 2):
                path = call.func.value
                yield Creation(call, path, _looks_first(module, call), in_os=False)


def is_path(module: Module, receiver: ast.expr) -> bool:
    """Whether ``x.mkdir`` is pathlib's, as far as is known: made by ``Path(...)``, or by ``/`` of one."""
    if module.type_of(receiver) == "pathlib.Path":
        return True
    if isinstance(receiver, ast.BinOp) and isinstance(receiver.op, ast.Div):
        return is_path(module, receiver.left)
    return any(
        isinstance(node, ast.Call) and module.qualified_name(node.func) == "pathlib.Path"
        for value in module.values(receiver).known
        for node in ast.walk(value.node)
    )


def _minds(module: Module, call: ast.Call, position: int) -> bool:
    """Whether the call fails where the directory exists."""
    given = module.argument(call, "exist_ok", position)
    return given is None or given.only_constant() is False


def _races(module: Module, creation: Creation, launch: LaunchContext) -> bool:
    call, path = creation.call, creation.path
    return (
        not is_caught(module, call, _CAUGHT)
        and runs_on_every_rank(module, call, launch)
        and is_same_on_all_ranks(module, path)
        and not (creation.looks_first and one_rank_made_it(module, call, path))
    )


def _looks_first(module: Module, call: ast.Call) -> bool:
    return any(
        _LOOKS_FIRST.search(word)
        for guard in module.guards(call)
        for word in names_behind(module, guard.test)
    )
