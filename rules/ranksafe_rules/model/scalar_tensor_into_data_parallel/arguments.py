"""The arguments of a call on a model that nn.DataParallel replicates."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.semantics.facts import DATA_PARALLEL
from ranksafe.semantics.module import Module

from ranksafe_rules._shared import trainer_methods as methods
from ranksafe_rules._shared.small_tensors import Small, small_tensor


def training_method(module: Module, call: ast.Call) -> methods.Function | None:
    """The overridden method of a Trainer around ``model(...)``, where ``model`` is what it was given."""
    if not isinstance(call.func, ast.Name):
        return None
    function = module.enclosing_function(call)
    if function is None:
        return None
    found = methods.override_of(
        module, function, "compute_loss", "training_step", "prediction_step"
    )
    names = methods.positional_names(found) if found else []
    return found if len(names) > 1 and names[1] == call.func.id else None


def wrapping(module: Module, call: ast.Call) -> ast.expr | None:
    """The ``nn.DataParallel(...)`` that made the object which is called."""
    # The first question is nearly free and answers for nearly every file.
    if not module.calls_written("DataParallel") or not _may_call_an_object(module, call.func):
        return None
    for value in module.values(call.func).known:
        made = value.node
        if isinstance(made, ast.Call) and module.qualified_name(made.func) == DATA_PARALLEL:
            return made
    return None


def _may_call_an_object(module: Module, callee: ast.expr) -> bool:
    """False for functions, classes and methods: nearly all calls, and values are costly to ask for."""
    if isinstance(callee, ast.Name):
        return module.qualified_name(callee) is None
    if isinstance(callee, ast.Attribute):
        cls = module.class_of_self(callee.value)
        if cls is None or module.has_method(cls, callee.attr):
            return False
        return bool(module.attribute_stores(cls, callee.attr))
    return False


def small_arguments(
    module: Module, call: ast.Call, step: methods.Function | None
) -> Iterator[tuple[ast.expr, Small, bool]]:
    """Arguments (and items stored into a ``**dictionary`` before the call) that are too small to be split."""
    batch = methods.positional_names(step)[2:3] if step is not None else []

    def is_tensor(node: ast.expr) -> bool:
        return _is_made_of(module, node, batch)

    arguments = [(item, False) for item in call.args]
    arguments += [(keyword.value, True) for keyword in call.keywords]
    for argument, is_keyword in arguments:
        small = small_tensor(module, argument, is_tensor)
        if small is not None:
            yield argument, small, is_keyword
    for keyword in call.keywords:
        if keyword.arg is None and isinstance(keyword.value, ast.Name):
            for value in _stored_items(module, call, keyword.value):
                small = small_tensor(module, value, is_tensor)
                if small is not None:
                    yield value, small, True


def _stored_items(module: Module, call: ast.Call, dictionary: ast.Name) -> Iterator[ast.expr]:
    function = module.enclosing_function(call)
    for node in module.nodes(ast.Assign, inside=function) if function is not None else ():
        if not isinstance(node, ast.Assign) or module.order_of(node) > module.order_of(call):
            continue
        for target in node.targets:
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                if target.value.id == dictionary.id:
                    yield node.value


def _is_made_of(module: Module, node: ast.expr, batch: list[str]) -> bool:
    """Whether an expression is a tensor for certain: made of ``inputs[...]``, or by a function of torch."""
    while True:
        if isinstance(node, ast.Subscript):
            if isinstance(node.value, ast.Name) and node.value.id in batch:
                return True
            node = node.value
        elif isinstance(node, ast.Call):
            name = module.qualified_name(node.func)
            if name is not None and name.startswith("torch.") and name[6:].islower():
                return True
            node = node.func
        elif isinstance(node, ast.Attribute):
            node = node.value
        elif isinstance(node, ast.Compare):
            node = node.left
        else:
            return False


def number_in(module: Module, argument: ast.expr) -> ast.expr | None:
    """The number in ``torch.tensor(number)`` or ``torch.tensor([number])``, ``.to(...)`` and the like left out."""
    while isinstance(argument, ast.Call) and isinstance(argument.func, ast.Attribute):
        if module.qualified_name(argument.func) in ("torch.tensor", "torch.as_tensor"):
            data = argument.args[0] if argument.args else None
            if isinstance(data, (ast.List, ast.Tuple)):
                return data.elts[0] if len(data.elts) == 1 else None
            return data
        argument = argument.func.value
    return None
