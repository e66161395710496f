"""What the settings of accelerate's Accelerator make of its methods."""

from __future__ import annotations

import ast

from ranksafe.semantics.rank_flow.operations import Operation, operation_named
from ranksafe.semantics.rank_flow.values import Thing, Value

_SAVES = "accelerate.Accelerator.save_state"
_WAITS = "accelerate.Accelerator.wait_for_everyone"


def wait_of(operation: Operation, receiver: Value | None) -> Operation | None:
    """The barrier in ``save_state`` of an Accelerator that names its checkpoints by itself; None for other calls.

    It waits under every strategy, behind deleting what is beyond ``total_limit`` (accelerate 1.15.0,
    accelerator.py:Accelerator.save_state).
    """
    if operation.name != _SAVES or not isinstance(receiver, Thing):
        return None
    return operation_named(_WAITS) if _names_checkpoints(receiver) else None


def _names_checkpoints(accelerator: Thing) -> bool:
    """Whether it was made with ``ProjectConfiguration(automatic_checkpoint_naming=True)``."""
    made, module = accelerator.node, accelerator.module
    if not isinstance(made, ast.Call) or module is None:
        return False
    for keyword in made.keywords:
        if keyword.arg != "project_config":
            continue
        given = [keyword.value]
        if isinstance(keyword.value, ast.Name):
            given = module.flow.assigned_values(keyword.value)
        return len(given) == 1 and any(
            item.arg == "automatic_checkpoint_naming"
            and isinstance(item.value, ast.Constant)
            and item.value.value is True
            for item in (given[0].keywords if isinstance(given[0], ast.Call) else [])
        )
    return False
