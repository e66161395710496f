"""Statements that rank 0 can run before the other ranks do."""

from __future__ import annotations

import ast
import re
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.rank_words import identifiers
from ranksafe_rules._shared.rank_zero import accelerator_of

_INIT: Final = "torch.distributed.init_process_group"
_LOOKS: Final = re.compile(r"exists?|is_?file|is_?dir", re.IGNORECASE)
_SIMPLE: Final = (ast.Expr, ast.Assign, ast.AnnAssign)
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)


def can_take_turns(module: Module, call: ast.Call) -> bool:
    """Whether ``accelerator.main_process_first()`` can stand around the statement of ``call``."""
    return accelerator_of(module, call) is not None and whole_statement(module, call) is not None


def can_go_first(module: Module, call: ast.Call) -> bool:
    """Whether rank 0 can be asked for, and waited for, before the statement of ``call``: the function has made the
    process group."""
    return (
        isinstance(whole_statement(module, call), _SIMPLE) and group_made(module, call) is not None
    )


def group_made(module: Module, call: ast.Call) -> ast.Call | None:
    """Where the function around ``call`` has made the process group, whatever way it took to ``call``."""
    function = module.enclosing_function(call)
    for made in module.calls(_INIT):
        if (
            module.enclosing_function(made) is function
            and module.order_of(made) < module.order_of(call)
            and not module.guards(made)
            and isinstance(module.parent(module.parent(made) or made), _FUNCTIONS)
        ):
            return made
    return None


def whole_statement(module: Module, call: ast.Call) -> ast.stmt | None:
    """The statement around ``call`` that all ranks reach, with the look at whether the files are there; None where it
    is part of something else, so that a rank could miss a barrier around it."""
    current: ast.AST | None = call
    while current is not None and not isinstance(module.parent(current), _FUNCTIONS):
        current = module.parent(current)
        if isinstance(current, ast.stmt) and not isinstance(current, (*_SIMPLE, ast.With)):
            if not _only_looks(current):
                return None
    if not isinstance(current, ast.stmt) or _leaves(current):
        return None
    return current


def _only_looks(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and any(map(_LOOKS.search, identifiers(statement.test)))


def _leaves(statement: ast.stmt) -> bool:
    """Whether it may end the function, or holds text of several lines, which cannot be indented."""
    return any(
        isinstance(node, (ast.Return, ast.Yield, ast.Await, ast.Raise))
        or (
            isinstance(node, ast.Constant)
            and isinstance(node.value, (str, bytes))
            and node.end_lineno != node.lineno
        )
        for node in ast.walk(statement)
    )
