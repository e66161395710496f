"""Expressions that are the rank of a process among all machines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.source.text import without_comment_lines

from ranksafe_rules._shared.chosen_devices import without_int
from ranksafe_rules._shared.origins import arguments_for

VARIABLES: Final = frozenset(
    {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}
)
"""Set by torchrun (and PyTorch operators), Slurm, Open MPI and MPICH."""
_CALLS: Final = frozenset({"torch.distributed.get_rank"})
PROCESS_INDEX: Final = "process_index"
_STATES: Final = (
    "accelerate.Accelerator",
    "accelerate.PartialState",
    "accelerate.state.AcceleratorState",
)
_READERS: Final = frozenset({"os.environ.get", "os.getenv", "os.environ.pop"})
_MAXIMUM_DEPTH: Final = 3

SEVERAL_NODES: Final = re.compile(
    r"\b(?:SLURM_\w+|NODE_RANK|GROUP_RANK|node_?rank|nnodes|num_?nodes|n_nodes|machine_rank|num_machines)\b"
    r"(?![\"']?[\s=:,]{0,3}[\"']?1\b)"
)
"""Words of programs that are started on several machines; ``nnodes=1``, ``--nnodes 1`` and ``"--nnodes", "1"`` are
none."""


_WORDS: Final = ("nnodes", "num_nodes", "node_rank", "SLURM_", "machine_rank", "num_machines")
"""Of them those for which other files are looked at."""


def shows_several_nodes(text: str) -> bool:
    """Whether a file's text says that several machines are meant."""
    return SEVERAL_NODES.search(text) is not None and bool(
        SEVERAL_NODES.search(without_comment_lines(text))
    )


def is_of_several_nodes(module: Module) -> bool:
    """Whether another file of the project, or a command that starts this one, says that several machines are meant."""
    return any(
        shows_several_nodes(text) for word in _WORDS for text in module.texts_saying(word)
    ) or any(SEVERAL_NODES.search(command.text) for command in module.launch_commands())


def is_global_rank(module: Module, node: ast.expr, depth: int = _MAXIMUM_DEPTH) -> bool:
    """Whether an expression is certainly a global rank, whatever way it got here."""
    if depth == 0:
        return False
    if isinstance(without_int(module, node), ast.Subscript):
        return _is_rank_itself(module, node, depth)
    origins = list(_origins(module, node))
    return bool(origins) and all(
        origin is not None and _is_rank_itself(module, origin, depth) for origin in origins
    )


def _origins(module: Module, node: ast.expr) -> Iterator[ast.expr | None]:
    """What an expression may be; None for something unknown. Constants, such as a default of 0 for one process, are
    left out."""
    node = without_int(module, node)
    if isinstance(node, ast.Attribute) and module.class_of_self(node.value) is None:
        yield from _stored(module, node)
        return
    if isinstance(node, ast.Name) and _is_parameter(module, node):
        # What a default says holds only where the callers pass nothing.
        passed: list[ast.expr | None] = [*arguments_for(module, node)]
        yield from passed or [None]
        return
    written = _item_named(module, node)
    if written is not None:
        yield written
        return
    values = module.values(node)
    if not values.complete:
        yield None
    for value in values.known:
        if not value.is_constant:
            yield value.node


def _item_named(module: Module, node: ast.expr) -> ast.Subscript | None:
    """``os.environ["RANK"]`` for a variable that gets nothing else."""
    if not isinstance(node, ast.Name):
        return None
    _, bindings = module.bindings(node)
    target = bindings[0] if len(bindings) == 1 else None
    assigned = module.assigned_value(target) if isinstance(target, ast.Name) else None
    return assigned if isinstance(assigned, ast.Subscript) else None


def _is_parameter(module: Module, name: ast.Name) -> bool:
    _, bindings = module.bindings(name)
    return len(bindings) == 1 and isinstance(bindings[0], ast.arg)


def _stored(module: Module, attribute: ast.Attribute) -> Iterator[ast.expr | None]:
    """What the file stores in ``args.rank``; the attribute itself where it is stored nowhere."""
    stores = [
        node
        for node in module.nodes(ast.Attribute)
        if isinstance(node, ast.Attribute)
        and node.attr == attribute.attr
        and isinstance(node.ctx, ast.Store)
    ]
    if not stores:
        yield attribute
    for store in stores:
        assigned = module.assigned_to_attribute(store)
        if not isinstance(assigned, ast.Constant):
            yield assigned


def _is_rank_itself(module: Module, node: ast.expr, depth: int) -> bool:
    node = without_int(module, node)
    if isinstance(node, ast.Subscript):
        if module.qualified_name(node.value) != "os.environ":
            return False
        return isinstance(node.slice, ast.Constant) and node.slice.value in VARIABLES
    if isinstance(node, ast.Attribute):
        if node.attr == PROCESS_INDEX and module.is_subclass(module.type_of(node.value), *_STATES):
            return True
        return depth > 1 and _is_other(module, node) and is_global_rank(module, node, depth - 1)
    if isinstance(node, ast.Name):
        return is_global_rank(module, node, depth - 1)
    if not isinstance(node, ast.Call):
        return False
    called = module.qualified_name(node.func)
    if called in _READERS:
        first = node.args[0] if node.args else None
        return isinstance(first, ast.Constant) and first.value in VARIABLES
    return called in _CALLS and not node.args and not node.keywords


def _is_other(module: Module, node: ast.Attribute) -> bool:
    """Whether an attribute has stores to look at, so that the question ends."""
    return any(item is not node for item in _stored(module, node))
