"""Divisions of a number by the number of processes or GPUs."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.option_defaults import option_default

_COUNT_CALLS: Final = frozenset(
    {
        "torch.distributed.get_world_size",
        "torch.cuda.device_count",
        "jax.device_count",
        "jax.local_device_count",
        "jax.process_count",
    }
)
_COUNT_NAMES: Final = frozenset(
    {
        "world_size", "num_processes", "num_gpus", "n_gpus", "n_gpu", "ngpus", "ngpu", "nprocs", "num_devices",
        "n_devices", "ngpus_per_node", "num_replicas",
    }
)  # fmt: skip
COUNTS: Final = _COUNT_NAMES | {"device_count", "process_count", "jax"}
"""Parts of words: a file without them divides by no such number."""
_SHARE: Final = re.compile(r"batch|bsz|(^|_)bs($|_)|per_|local|micro", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Split:
    """``batch // count``."""

    batch: ast.expr
    count: ast.expr

    @property
    def batch_name(self) -> str:
        """The last word of what is divided: ``batch_size`` of ``config.batch_size`` and ``config["batch_size"]``."""
        return _last_word(self.batch)

    def default_size(self, module: Module) -> int | None:
        """The number that the option behind ``args.batch_size`` has where the user gives none; None where the file
        adds no such option."""
        is_option = isinstance(self.batch, ast.Attribute)
        size = option_default(module, self.batch_name) if is_option else None
        return size if isinstance(size, int) else None

    def becomes_a_batch_size(self, module: Module, division: ast.AST) -> bool:
        """Whether the result is kept or passed on under a name that says it is a share of the batch."""
        if isinstance(division, ast.AugAssign):
            return True
        parent = module.parent(division)
        if isinstance(parent, ast.Call) and module.qualified_name(parent.func) == "builtins.int":
            parent = module.parent(parent)
        if isinstance(parent, ast.keyword):
            return bool(_SHARE.search(parent.arg or ""))
        targets = parent.targets if isinstance(parent, ast.Assign) else []
        if isinstance(parent, ast.AnnAssign):
            targets = [parent.target]
        return any(_SHARE.search(_last_word(target)) for target in targets)

    def is_checked(self, module: Module) -> bool:
        """Whether the file looks at the remainder of this batch size anywhere (``%``, ``divmod``), or compares the
        product of the shares with it."""
        for node in module.nodes(ast.BinOp):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
                if _last_word(node.left) == self.batch_name:
                    return True
        return any(
            call.args and _last_word(call.args[0]) == self.batch_name
            for call in module.calls_written("divmod")
        )


def split_at(module: Module, node: ast.AST) -> Split | None:
    """The division ``node`` is: ``a // b``, ``int(a / b)`` or ``a //= b`` with b a number of processes."""
    if isinstance(node, ast.AugAssign):
        batch: ast.expr = node.target
        operator, count = node.op, node.value
        whole = isinstance(operator, ast.FloorDiv)
    elif isinstance(node, ast.BinOp):
        batch, operator, count = node.left, node.op, node.right
        whole = isinstance(operator, ast.FloorDiv) or (
            isinstance(operator, ast.Div) and _is_truncated(module, node)
        )
    else:
        return None
    return Split(batch, count) if whole and _is_count(module, count) else None


def _is_truncated(module: Module, division: ast.BinOp) -> bool:
    call = module.parent(division)
    return isinstance(call, ast.Call) and module.qualified_name(call.func) == "builtins.int"


def _is_count(module: Module, node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        name = module.qualified_name(node.func)
        return name in _COUNT_CALLS or (name == "builtins.len" and _is_device_list(module, node))
    if _last_word(node) in _COUNT_NAMES:
        return True
    return any(
        isinstance(value.node, ast.Call) and module.qualified_name(value.node.func) in _COUNT_CALLS
        for value in module.values(node).known
    )


def _is_device_list(module: Module, length: ast.Call) -> bool:
    devices = length.args[0] if length.args else None
    return isinstance(devices, ast.Call) and (
        module.qualified_name(devices.func) in ("jax.devices", "jax.local_devices")
    )


def _last_word(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return ""
