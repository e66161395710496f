"""Where a compute_loss divides its loss by the number of items of all processes."""

from __future__ import annotations

import ast
import re
from typing import Final

from packaging.version import Version
from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed

from ranksafe_rules._shared import trainer_methods as methods

_PROCESSES: Final = re.compile(r"num_processes|world_size|n_gpu|num_replicas|all_reduce|gather")
_GLOBAL_BY_DEFAULT: Final = Version("4.54.0")
"""`average_tokens_across_devices` is True by default from here on (transformers pull request #39395)."""
_SETTING: Final = "average_tokens_across_devices"


def division_by_count(module: Module, function: methods.Function) -> ast.expr | None:
    """The division of a loss by the count, or the count as it is handed to the model, where the override neither lets
    the library finish the loss nor takes the number of processes into account."""
    if not methods.takes_count_by_name(function) or _PROCESSES.search(_code_of(function)):
        return None
    if any(methods.is_super_call(call, "compute_loss") for call in _calls(function)):
        return None
    for rebinding in methods.rebindings_of_count(module, function):
        if not methods.carries_count(rebinding.value, {methods.COUNT}):
            return None
    for node in module.nodes(ast.BinOp, inside=function):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if _is_count(node.right):
                return node
    for handover in methods.handovers(module, function):
        if not handover.to_library:
            return handover.argument
    return None


def count_is_global(module: Module, launch: LaunchContext) -> bool | None:
    """Whether the Trainer counts the items of all processes; None where the version decides and is not known."""
    for word in ("TrainingArguments", "Seq2SeqTrainingArguments"):
        for call in module.calls_written(word):
            given = module.argument(call, _SETTING)
            if given is not None:
                # A setting that is not a constant may be meant for either.
                return given.only_constant() is True
    version = launch.version("transformers")
    return None if version is None else version >= _GLOBAL_BY_DEFAULT


def _calls(function: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(function) if isinstance(node, ast.Call)]


def _code_of(function: methods.Function) -> str:
    """The statements without a docstring, which may speak of anything."""
    return "\n".join(
        unparsed(statement)
        for statement in function.body
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    )


def _is_count(divisor: ast.expr) -> bool:
    """``num_items_in_batch``, ``max(num_items_in_batch, 1)``, ``num_items_in_batch.clamp(min=1)``."""
    if isinstance(divisor, ast.Call):
        parts = [*divisor.args]
        if isinstance(divisor.func, ast.Attribute):
            parts.append(divisor.func.value)
        return any(_is_count(part) for part in parts)
    return isinstance(divisor, ast.Name) and divisor.id == methods.COUNT
