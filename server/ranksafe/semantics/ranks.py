"""Variables that hold the rank, whatever they are called: the program itself says so."""

from __future__ import annotations

import ast

from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import FUNCTIONS

_STARTERS = ("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes")
"""They call the function that they are given with the number of the process (torch 2.13.0,
multiprocessing/spawn.py)."""
_GROUP = "torch.distributed.init_process_group"
_WORDS = tuple(name.rpartition(".")[2] for name in (*_STARTERS, _GROUP))


def rank_variables(module: Module) -> frozenset[ast.AST]:
    """The first parameters of functions that are spawned, and what a process group is told to be the rank: the nodes
    that bind them (`Module.bindings`)."""
    if not module.text_says(_may_name_the_rank):
        return frozenset()
    found: frozenset[ast.AST] = module.memoized(
        "rank variables", module.tree, 0, lambda _tree, _depth: _found(module)
    )
    return found


def _may_name_the_rank(text: str) -> bool:
    return any(word in text for word in _WORDS)


def _found(module: Module) -> frozenset[ast.AST]:
    found: list[ast.AST] = []
    for call in module.calls(*_STARTERS):
        worker = module.argument_node(call, "fn", 0)
        for function in module.bindings(worker)[1] if isinstance(worker, ast.Name) else ():
            if isinstance(function, FUNCTIONS):
                found += [*function.args.posonlyargs, *function.args.args][:1]
    for call in module.calls(_GROUP):
        rank = module.argument_node(call, "rank", 4)
        if isinstance(rank, ast.Name):
            found += module.bindings(rank)[1]
    return frozenset(found)
