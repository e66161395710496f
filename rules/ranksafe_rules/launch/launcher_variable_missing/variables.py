"""Reads of what only a launcher sets, at places that every start of a script reaches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ranksafe.semantics.facts import is_main_guard
from ranksafe.semantics.module import Module

from ranksafe_rules.launch.reached import is_reached

_SINGLE: Final = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
"""The variables, with what they are for a process of its own."""
_VARIABLES: Final = frozenset({*_SINGLE, "MASTER_ADDR", "MASTER_PORT"})
_INIT: Final = "torch.distributed.init_process_group"
_NOT_FROM_ENVIRONMENT: Final = (("rank", 4), ("world_size", 3), ("store", 5))
_SETS_THEM: Final = re.compile(
    r"environ\.(?:update|setdefault)|putenv|dotenv|environ\s*=|environ\s*\|="
    r"|init_distributed|mpi4py|launch_from_\w+|horovod"
)
_STARTS_OTHERS: Final = re.compile(
    r"subprocess|Popen|execv|os\.system|spawn|start_processes|notebook_launcher|elastic_launch|launch_agent|submitit"
)
_OTHER_START: Final = re.compile(
    r"torchrun|torch\.distributed\.(?:launch|run)|accelerate launch|deepspeed|srun|mpi(?:run|exec)|horovod"
)


@dataclass(frozen=True, slots=True)
class Read:
    """One read of a variable, by the script or by ``init_process_group``."""

    node: ast.expr
    variable: str
    fallback: str | None
    """What it is for a single process, if the program can go on with it."""


def reads_at_start(module: Module) -> Iterator[Read]:
    """The reads that are reached however the script is started, in source order; none where the script itself may set
    the variables, or start other processes."""
    if module.text_says(_may_set_them) or any(map(_is_set, module.nodes(ast.Subscript))):
        return
    made = [call for call in module.calls(_INIT) if _reads_environment(module, call)]
    found = [Read(call.func, "RANK", None) for call in made]
    for node in module.nodes(ast.Subscript):
        assert isinstance(node, ast.Subscript)
        variable = _variable(node)
        if variable is not None and module.qualified_name(node.value) == "os.environ":
            found.append(Read(node, variable, None if made else _SINGLE.get(variable)))
    found.sort(key=lambda read: module.order_of(read.node))
    for read in found:
        if is_reached(module, read.node, _is_decided) and not _others_may_set(module):
            yield read


def _others_may_set(module: Module) -> bool:
    """Whether the script runs a function of another file of the project that may set the variables."""
    for call in module.nodes(ast.Call):
        assert isinstance(call, ast.Call)
        name = module.qualified_name(call.func)
        found = None if name is None else module.project_definition(name)
        if found is not None and found[0].text_says(_speaks_of_them):
            return True
    return False


def _speaks_of_them(text: str) -> bool:
    return "environ" in text or "dist" in text


def names_a_launcher(text: str) -> bool:
    """Whether the file says that a launcher starts it."""
    return _OTHER_START.search(text) is not None


def _may_set_them(text: str) -> bool:
    return _SETS_THEM.search(text) is not None or _STARTS_OTHERS.search(text) is not None


def _is_set(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.slice, ast.Constant)
        and node.slice.value in _VARIABLES
    )


def _variable(node: ast.Subscript) -> str | None:
    if isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Constant):
        name = node.slice.value
        return name if isinstance(name, str) and name in _VARIABLES else None
    return None


def _reads_environment(module: Module, call: ast.Call) -> bool:
    if any(module.argument(call, name, at) is not None for name, at in _NOT_FROM_ENVIRONMENT):
        return False
    backend = module.argument(call, "backend", 0)
    if backend is not None and "mpi" in backend.constants():
        return False  # MPI knows its ranks itself.
    method = module.argument(call, "init_method", 1)
    return method is None or method.only_constant() == "env://"


def _is_decided(module: Module, node: ast.AST) -> bool:
    if any(not is_main_guard(guard.test) for guard in module.guards(node)):
        return True
    current = module.parent(node)
    while current is not None and not isinstance(current, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if isinstance(current, (ast.Try, ast.For, ast.While, ast.With, ast.Lambda, ast.Match)):
            return True
        current = module.parent(current)
    return False
