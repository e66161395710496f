"""Tensors that a Trainer's collator puts into every batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.semantics.facts import TRAINER
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.small_tensors import Small, small_tensor

Function = ast.FunctionDef | ast.AsyncFunctionDef


def small_in_batches(
    module: Module, trainer: ast.Call
) -> Iterator[tuple[ast.expr, ast.expr, Small]]:
    """The collator's argument, and the too small tensors in what the collator (of this file) returns."""
    if not module.is_subclass(module.qualified_name(trainer.func), TRAINER):
        return
    argument = module.argument_node(trainer, "data_collator", 2)
    function = _function(module, argument) if argument is not None else None
    if argument is None or function is None:
        return
    for item in module.returns_of(function):
        for display in _dictionaries(module, item.value):
            for value in display.values:
                small = small_tensor(module, value, lambda _: False)
                if small is not None:
                    yield argument, value, small


def _function(module: Module, node: ast.expr) -> Function | None:
    """The function that is called for a batch: a function of this file, or an object's ``__call__``."""
    cls = module.class_named(module.type_of(node))
    if cls is not None:
        return module.method(cls, "__call__")
    if not isinstance(node, ast.Name):
        return None
    bindings = module.module_bindings(node.id)
    last = bindings[-1] if bindings else None
    return last if isinstance(last, Function) else None


def _dictionaries(module: Module, returned: ast.expr | None) -> list[ast.Dict]:
    if returned is None:
        return []
    return [
        value.node
        for value in module.values(returned).known
        if isinstance(value.node, ast.Dict) and value.module is module
    ]
