"""Directories that one rank has made long before all ranks look for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.every_rank import callers, kept_to_some_ranks
from ranksafe_rules._shared.passed_arguments import passed_for
from ranksafe_rules._shared.rank_words import assigned_to
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
_MOST_EXPRESSIONS: Final = 200


def one_rank_made_it(module: Module, call: ast.Call, path: ast.expr) -> bool:
    """Whether some ranks make the directory that is the path of ``call`` elsewhere in the file (``args = parse()``,
    ``if rank == 0: os.makedirs(args.out)``), and all ranks meet before they come to ``call``."""
    return not _made_on_some_ranks(module).isdisjoint(
        _places(module, path)
    ) and _is_after_a_meeting(module, call, set())


def _places(module: Module, path: ast.expr) -> set[tuple[ast.AST, str]]:
    """What a path is: attributes, each with a call that made its object."""
    found: set[tuple[ast.AST, str]] = set()
    seen: set[tuple[ast.AST, str | None]] = set()
    pending: list[tuple[ast.expr, str | None]] = [(path, None)]
    while pending and len(seen) < _MOST_EXPRESSIONS:
        node, attribute = pending.pop()
        if (node, attribute) in seen:
            continue
        seen.add((node, attribute))
        if attribute is not None and isinstance(node, ast.Call):
            found.add((node, attribute))
        if attribute is None and isinstance(node, ast.Attribute):
            pending.append((node.value, node.attr))
        else:
            pending += [(item, attribute) for item in _behind(module, node)]
    return found


def _behind(module: Module, node: ast.expr) -> Iterator[ast.expr]:
    """What an expression stands for: through variables, attributes, parameters and functions of the file."""
    if isinstance(node, ast.Call):
        if module.qualified_name(node.func) in _SAME_PLACE:
            yield from node.args
        yield from _returned(module, node)
    elif isinstance(node, (ast.Name, ast.Attribute)):
        yield from assigned_to(module, node)
        if isinstance(node, ast.Name):
            yield from _given(module, node)


def _returned(module: Module, call: ast.Call) -> Iterator[ast.expr]:
    function = module.function_called(call)
    for leaving in () if function is None else module.returns_of(function):
        if leaving.value is not None:
            yield leaving.value


def _given(module: Module, name: ast.Name) -> Iterator[ast.expr]:
    for binding in module.bindings(name)[1]:
        if isinstance(binding, ast.arg):
            yield from passed_for(module, module.enclosing_function(binding), binding.arg)


def _made_on_some_ranks(module: Module) -> set[tuple[ast.AST, str]]:
    """The places of directories that some ranks make."""
    found: set[tuple[ast.AST, str]] | None = module.answers.get("directories of some ranks")
    if found is None:
        found = module.answers["directories of some ranks"] = set()
        for call in (*module.calls_written("makedirs"), *module.calls_written("mkdir")):
            path = call.args[0] if call.args else getattr(call.func, "value", None)
            if isinstance(path, ast.expr) and kept_to_some_ranks(module, call):
                found |= _places(module, path)
    return found


def _is_after_a_meeting(module: Module, node: ast.AST, seen: set[ast.AST]) -> bool:
    """Whether all ranks meet in the function around a node before it, or before each call of that function that all
    ranks perform."""
    function = module.enclosing_function(node)
    if function is None:
        return False
    if any(
        module.enclosing_function(meeting) is function
        and module.order_of(meeting) < module.order_of(node)
        for meeting in _meetings(module)
    ):
        return True
    if function in seen:
        return True  # Asked already, and it was so: else nobody would ask again.
    seen.add(function)
    found = [
        call
        for call in callers(module, function, certain=False)
        if not kept_to_some_ranks(module, call)
    ]
    return (
        bool(found)
        and not any(callers_elsewhere(module, function))
        and all(_is_after_a_meeting(module, call, seen) for call in found)
    )


def _meetings(module: Module) -> list[ast.Call]:
    """The calls at which all ranks meet, without a condition: also those of the file's functions with such a call."""
    found: list[ast.Call] | None = module.answers.get("meetings of all ranks")
    if found is None:
        found = module.answers["meetings of all ranks"] = []
        pending = [call for word in _MEETINGS for call in module.calls_written(word)]
        functions: set[ast.AST] = set()
        while pending:
            call = pending.pop()
            if module.guards(call):
                continue
            found.append(call)
            function = module.enclosing_function(call)
            if function is not None and function not in functions:
                functions.add(function)
                pending += callers(module, function, certain=True)
    return found
