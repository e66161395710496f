"""Paths that all ranks have, or read from the same directory."""

from __future__ import annotations

import ast
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.passed_arguments import passed_for
from ranksafe_rules._shared.rank_words import assigned_to
from ranksafe_rules._shared.same_path import is_same_on_all_ranks

_MAXIMUM_DEPTH: Final = 10
_LISTINGS: Final = frozenset({"os.listdir", "glob.glob", "glob.iglob"})
_LISTING_METHODS: Final = frozenset({"glob", "rglob", "iterdir"})
_ORDERED: Final = frozenset(
    {"builtins.sorted", "builtins.list", "builtins.reversed", "builtins.filter"}
)
_JOINED: Final = frozenset({"os.path.join", "pathlib.Path", "builtins.str"})


def is_same_or_listed(
    module: Module,
    path: ast.expr,
    depth: int = _MAXIMUM_DEPTH,
    above: frozenset[ast.AST] = frozenset(),
) -> bool:
    """Whether a path is the same on all ranks, or each takes it from the same listing: ``os.path.join(folder, name)``
    with ``for name in os.listdir(folder)``.

    ``above``: the bindings that are being looked at (``name = os.path.join(folder, name)``).
    """
    if depth == 0:
        return False
    if is_same_on_all_ranks(module, path):
        return True
    if isinstance(path, ast.Name):
        return _is_listed(module, path, depth - 1, above)
    if isinstance(path, ast.Subscript) and not isinstance(path.slice, ast.Slice):
        return is_same_on_all_ranks(module, path.slice) and _lists(module, path.value, depth - 1)
    if isinstance(path, ast.Call) and module.qualified_name(path.func) in _JOINED:
        return all(is_same_or_listed(module, part, depth - 1, above) for part in path.args)
    if isinstance(path, ast.Call):
        given = _returned(module, path)
        return bool(given) and all(
            is_same_or_listed(module, item, depth - 1, above) for item in given
        )
    if isinstance(path, (ast.BinOp, ast.JoinedStr, ast.FormattedValue)):
        parts = [child for child in ast.iter_child_nodes(path) if isinstance(child, ast.expr)]
        return all(is_same_or_listed(module, part, depth - 1, above) for part in parts)
    return False


def _is_listed(module: Module, name: ast.Name, depth: int, above: frozenset[ast.AST]) -> bool:
    """A variable of a loop over a listing, or a path made of one; of several bindings all have to be."""
    _, bindings = module.bindings(name)
    below = above | frozenset(bindings)
    return bool(bindings) and all(
        binding in above or _is_listed_there(module, binding, depth, below) for binding in bindings
    )


def _is_listed_there(
    module: Module, binding: ast.AST, depth: int, above: frozenset[ast.AST]
) -> bool:
    if isinstance(binding, ast.arg):
        passed = list(passed_for(module, module.enclosing_function(binding), binding.arg))
        return bool(passed) and all(
            is_same_or_listed(module, item, depth, above) for item in passed
        )
    if not isinstance(binding, ast.Name):
        return False
    holder = module.parent(binding)
    if isinstance(holder, (ast.For, ast.comprehension)):
        return holder.target is binding and _lists(module, holder.iter, depth)
    value = module.assigned_value(binding)
    return value is not None and is_same_or_listed(module, value, depth, above)


def _lists(
    module: Module, items: ast.expr, depth: int, above: frozenset[ast.AST] = frozenset()
) -> bool:
    """Whether an expression is a listing of a directory that all ranks share, ordered, filtered or cut."""
    if depth == 0:
        return False
    if isinstance(items, ast.Name):
        _, bindings = module.bindings(items)
        below = above | frozenset(bindings)
        return bool(bindings) and all(
            binding in above
            or (
                isinstance(binding, ast.Name)
                and (value := module.assigned_value(binding)) is not None
                and _lists(module, value, depth - 1, below)
            )
            for binding in bindings
        )
    if isinstance(items, ast.Subscript) and isinstance(items.slice, ast.Slice):
        bounds = (items.slice.lower, items.slice.upper, items.slice.step)
        return _lists(module, items.value, depth - 1, above) and all(
            _counts(module, bound, depth, above) for bound in bounds if bound is not None
        )
    if isinstance(items, ast.ListComp):
        made = items.generators[0]
        return len(items.generators) == 1 and _lists(module, made.iter, depth - 1, above)
    return isinstance(items, ast.Call) and _gives_listing(module, items, depth, above)


def _gives_listing(module: Module, call: ast.Call, depth: int, above: frozenset[ast.AST]) -> bool:
    given = _returned(module, call)
    if given:
        return all(_lists(module, item, depth - 1, above) for item in given)
    called = module.qualified_name(call.func)
    if called in _ORDERED:
        return bool(call.args) and _lists(module, call.args[-1], depth - 1, above)
    if called in _LISTINGS:
        return all(is_same_on_all_ranks(module, item) for item in call.args)
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr in _LISTING_METHODS
        and is_same_on_all_ranks(module, call.func.value)
    )


def _counts(module: Module, bound: ast.expr, depth: int, above: frozenset[ast.AST]) -> bool:
    """A bound that is the same on all ranks: a number, or one counted from a listing."""
    if is_same_on_all_ranks(module, bound):
        return True
    if depth == 0:
        return False
    if isinstance(bound, ast.Call) and module.qualified_name(bound.func) == "builtins.len":
        return bool(bound.args) and _lists(module, bound.args[0], depth, above)
    if isinstance(bound, ast.Name):
        values = list(assigned_to(module, bound))
        return bool(values) and all(_counts(module, value, depth - 1, above) for value in values)
    if isinstance(bound, (ast.BinOp, ast.UnaryOp)):
        parts = [child for child in ast.iter_child_nodes(bound) if isinstance(child, ast.expr)]
        return all(_counts(module, part, depth - 1, above) for part in parts)
    return False


def _returned(module: Module, call: ast.Call) -> list[ast.expr]:
    """What a function of the file gives back, if it always gives something."""
    called = module.function_called(call)
    leaving = [] if called is None else [item.value for item in module.returns_of(called)]
    given = [item for item in leaving if item is not None]
    return given if len(given) == len(leaving) else []
