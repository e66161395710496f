"""Numbers that are another one in each process: made of the rank, the time, the process id."""

from __future__ import annotations

import ast
import re
from enum import Enum
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.units import callee_name

from ranksafe_rules._shared.origins import arguments_for

_RANK: Final = re.compile(
    r"^_?(?:(?:local|global|distributed|dist|world|my|ddp|process|proc)_?)?rank$|^(?:local_)?process_index$|^RANK$|"
    r"^LOCAL_RANK$|^SLURM_PROCID$",
    re.IGNORECASE,
)
"""Not ``node_rank`` and the ranks of groups: their members have the same."""
_RANK_CALLS: Final = frozenset({"get_rank", "get_local_rank", "get_global_rank"})
_OF_THE_PROCESS: Final = frozenset(
    {
        "time.time", "time.time_ns", "time.perf_counter", "time.monotonic", "os.getpid", "os.urandom",
        "torch.seed", "torch.random.seed", "secrets.randbits", "secrets.randbelow", "uuid.uuid4",
        "datetime.datetime.now", "datetime.now",
    }
)  # fmt: skip
"""Calls whose result no seed makes equal."""
_NUMBERS: Final = frozenset({"builtins.int", "builtins.abs", "builtins.round", "builtins.float"})
_PASSING: Final = frozenset({"timestamp", "item"})
_ENVIRONMENT: Final = frozenset({"os.environ.get", "os.getenv", "os.environ.setdefault"})
_MAXIMUM_DEPTH: Final = 6


class Differs(Enum):
    """Why a number is another one in each process."""

    BY_RANK = "rank"
    BY_PROCESS = "process"


def differs(module: Module, node: ast.expr, depth: int = _MAXIMUM_DEPTH) -> Differs | None:
    """Why an expression certainly is another number in each process; None when it is not known to be.

    What an unknown call makes of a rank is not known: it may well bring all ranks to one number.
    """
    if depth == 0:
        return None
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Sub) and _asks(node.left):
            # What is subtracted may have been added to what the call returns: initial_seed() - rank.
            return differs(module, node.left, depth - 1)
        parts = [node.left, node.right]
    elif isinstance(node, ast.IfExp):
        parts = [node.body, node.orelse]
    elif isinstance(node, ast.UnaryOp):
        parts = [node.operand]
    elif isinstance(node, ast.BoolOp):
        parts = node.values
    elif isinstance(node, ast.Call):
        return _call_differs(module, node, depth)
    elif isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return Differs.BY_RANK if isinstance(key, str) and _RANK.match(key) else None
    else:
        return _variable_differs(module, node, depth)
    return _first(module, parts, depth)


def _asks(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Call) for part in ast.walk(node))


def _first(module: Module, parts: list[ast.expr], depth: int) -> Differs | None:
    found = (differs(module, part, depth - 1) for part in parts)
    return next((why for why in found if why is not None), None)


def _variable_differs(module: Module, node: ast.expr, depth: int) -> Differs | None:
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    values = module.values(node)
    if _RANK.match(node.attr if isinstance(node, ast.Attribute) else node.id):
        return None if values.known and values.are_constants else Differs.BY_RANK
    return _first(module, _sources(module, node), depth)


def _sources(module: Module, node: ast.Name | ast.Attribute) -> list[ast.expr]:
    """What a variable was assigned, as written: what a function does before it returns is not looked through."""
    if isinstance(node, ast.Name):
        return [*module.flow.assigned_values(node), *arguments_for(module, node)]
    cls = module.class_of_self(node.value)
    stores = [] if cls is None else module.attribute_stores(cls, node.attr)
    assigned = [module.assigned_to_attribute(store) for store in stores]
    return [value for value in assigned if value is not None]


def _call_differs(module: Module, call: ast.Call, depth: int) -> Differs | None:
    name = module.qualified_name(call.func)
    last = callee_name(call)
    if last in _RANK_CALLS:
        return Differs.BY_RANK
    if name in _OF_THE_PROCESS:
        return Differs.BY_PROCESS
    if name in _ENVIRONMENT and call.args:
        key = call.args[0]
        written = key.value if isinstance(key, ast.Constant) else None
        return Differs.BY_RANK if isinstance(written, str) and _RANK.match(written) else None
    if name in _NUMBERS and call.args:
        return differs(module, call.args[0], depth - 1)
    if last in _PASSING and isinstance(call.func, ast.Attribute):
        return differs(module, call.func.value, depth - 1)
    return None
