"""Directories that one rank has made long before all ranks look for them."""

from __future__ import annotations

import ast
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.every_rank import callers, kept_to_some_ranks
from ranksafe_rules._shared.rank_words import asks_for_the_rank, assigned_to
from ranksafe_rules._shared.trails.functions import callers_elsewhere

_SAME_PLACE: Final = frozenset(
    {
        "os.path.abspath",
        "os.path.expanduser",
        "os.path.normpath",
        "os.path.realpath",
        "builtins.str",
        "pathlib.Path",
    }
)
"""They name the place that they are given."""
_MEETINGS: Final = ("backward", "barrier", "wait_for_everyone", "all_reduce", "all_gather")
"""Last words of calls behind which every rank has done what it does before them."""
_MAXIMUM_STEPS: Final = 4


def one_rank_made_it(module: Module, call: ast.Call, path: ast.expr) -> bool:
    """Whether the function that makes an object, or gives the attribute of it its value that is the path of ``call``,
    has some ranks make the directory (``args = parse()``, ``if rank == 0: os.makedirs(args.out)``), and all ranks meet
    before they come to ``call``."""
    place = _place(module, path)
    return (
        place is not None and _some_ranks_make(module, place) and _is_after_a_meeting(module, call)
    )


def _place(module: Module, path: ast.expr) -> str | None:
    """The attribute of a variable that a path is, as written."""
    for _ in range(_MAXIMUM_STEPS):
        if isinstance(path, ast.Call) and module.qualified_name(path.func) in _SAME_PLACE:
            if len(path.args) != 1 or path.keywords:
                return None
            path = path.args[0]
        elif isinstance(path, ast.Name):
            values = list(assigned_to(module, path))
            if len(values) != 1:
                return None
            path = values[0]
        else:
            break
    is_attribute = isinstance(path, ast.Attribute) and isinstance(path.value, ast.Name)
    return module.text_of(path) if is_attribute else None


def _some_ranks_make(module: Module, place: str) -> bool:
    for word in ("makedirs", "mkdir"):
        for call in module.calls_written(word):
            path = call.args[0] if call.args else getattr(call.func, "value", None)
            if not isinstance(path, ast.expr) or _place(module, path) != place:
                continue
            if any(asks_for_the_rank(module, guard.test) for guard in module.guards(call)):
                if _is_named_before(module, call, place):
                    return True
    return False


def _is_named_before(module: Module, call: ast.Call, place: str) -> bool:
    """Whether the function around ``call`` gives the attribute its value before, or makes the object that has it."""
    function = module.enclosing_function(call)
    names = (place, place.partition(".")[0])
    return function is not None and any(
        isinstance(node, (ast.Attribute, ast.Name))
        and isinstance(node.ctx, ast.Store)
        and module.order_of(node) < module.order_of(call)
        and module.text_of(node) in names
        for kind in (ast.Attribute, ast.Name)
        for node in module.nodes(kind, inside=function)
    )


def _is_after_a_meeting(module: Module, node: ast.AST, steps: int = _MAXIMUM_STEPS) -> bool:
    """Whether all ranks meet in the function around a node before it, or before each call of that function that all
    ranks perform."""
    function = module.enclosing_function(node)
    if function is None or steps == 0:
        return False
    for word in _MEETINGS:
        for meeting in module.calls_written(word):
            if module.enclosing_function(meeting) is function and not module.guards(meeting):
                if module.order_of(meeting) < module.order_of(node):
                    return True
    found = [
        call
        for call in callers(module, function, certain=False)
        if not kept_to_some_ranks(module, call)
    ]
    return (
        bool(found)
        and not any(callers_elsewhere(module, function))
        and all(_is_after_a_meeting(module, call, steps - 1) for call in found)
    )
