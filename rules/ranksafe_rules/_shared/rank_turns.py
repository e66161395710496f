"""Ranks that take turns: a barrier that only some of them meet, so that one goes first and the others after it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.every_rank import callers
from ranksafe_rules._shared.rank_words import asks_for_the_rank

_MAXIMUM_DEPTH: Final = 4
_BARRIERS: Final = ("barrier", "wait_for_everyone", "monitored_barrier", "synchronize")


def ranks_take_turns(module: Module, node: ast.AST, depth: int = _MAXIMUM_DEPTH) -> bool:
    """Whether a barrier under a condition on the rank stands before ``node`` in its function, or before the calls of
    that function: ``if rank != 0: dist.barrier()``, the work, ``if rank == 0: dist.barrier()``."""
    function = module.enclosing_function(node)
    if any(
        module.enclosing_function(call) is function
        and module.order_of(call) < module.order_of(node)
        for call in _meetings_of_some(module)
    ):
        return True
    if function is None or depth == 0:
        return False
    found = list(callers(module, function, certain=True))
    return bool(found) and all(ranks_take_turns(module, call, depth - 1) for call in found)


def _meetings_of_some(module: Module) -> Iterator[ast.Call]:
    """The barriers that only some ranks meet, and the calls of functions with one."""
    for name in _BARRIERS:
        for call in module.calls_written(name):
            only_some = _is_for_some(module, call)
            if only_some:
                yield call
            function = module.enclosing_function(call)
            for caller in () if function is None else callers(module, function, certain=True):
                if only_some or _is_for_some(module, caller):
                    yield caller


def _is_for_some(module: Module, node: ast.AST) -> bool:
    return any(asks_for_the_rank(module, guard.test) for guard in module.guards(node))
