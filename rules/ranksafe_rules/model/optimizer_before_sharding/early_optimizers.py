"""Optimizers that were given the parameters of a model before it is sharded."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed

from ranksafe_rules._shared.loss_inputs import calls_feeding
from ranksafe_rules._shared.wrapped_models import is_possible

FLATTENING: Final = "torch.distributed.fsdp.FullyShardedDataParallel"
SHARDING: Final = (
    FLATTENING,
    "torch.distributed.fsdp.fully_shard",
    "torch.distributed._composable.fsdp.fully_shard",
)
"""What replaces a model's parameters (torch 2.13.0); FullyShardedDataParallel not with ``use_orig_params=True``."""
_PARAMETERS: Final = frozenset({"parameters", "named_parameters"})


@dataclass(frozen=True, slots=True)
class Early:
    """An optimizer built too early."""

    statement: ast.Assign
    optimizer: ast.expr
    """The name that it gets."""
    call: ast.Call
    wrap: ast.Call
    """The call that shards the model."""


def early_optimizers(module: Module, wrap: ast.Call) -> Iterator[Early]:
    """The optimizers before ``wrap`` in its function that hold parameters of what it shards, and go on being used."""
    model = sharded_model(module, wrap)
    if model is None or _keeps_parameters(module, wrap):
        return
    function = module.enclosing_function(wrap)
    text = unparsed(model)
    for statement in _assignments(module, function):
        call, target = statement.value, statement.targets[0]
        if not isinstance(call, ast.Call) or module.order_of(call) > module.order_of(wrap):
            continue
        if not _takes(module, call, text) or not _is_optimizer(module, function, call, target):
            continue
        if not is_possible(module, (*module.guards(statement), *module.guards(wrap))):
            continue
        if not _is_changed_between(module, function, statement, wrap, text, target):
            yield Early(statement, target, call, wrap)


def sharded_model(module: Module, wrap: ast.Call) -> ast.expr | None:
    """What a call shards, where it has a name."""
    if module.qualified_name(wrap.func) not in SHARDING:
        return None
    model = module.argument_node(wrap, "module", 0)
    return model if isinstance(model, (ast.Name, ast.Attribute)) else None


def _keeps_parameters(module: Module, wrap: ast.Call) -> bool:
    if module.qualified_name(wrap.func) != FLATTENING:
        return False
    given = module.argument(wrap, "use_orig_params", 10)
    return given is not None and given.only_constant() is not False


def _assignments(module: Module, function: ast.AST | None) -> Iterator[ast.Assign]:
    for node in module.nodes(ast.Assign, inside=function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            if isinstance(node.targets[0], (ast.Name, ast.Attribute)):
                if module.enclosing_function(node) is function:
                    yield node


def _is_optimizer(
    module: Module, function: ast.AST | None, call: ast.Call, target: ast.expr
) -> bool:
    """An optimizer of torch, or what has both `step` and `zero_grad`, whichever library it is from."""
    if module.is_subclass(module.type_of(call), "torch.optim.Optimizer"):
        return True
    text = unparsed(target)
    return all(
        any(
            isinstance(used.func, ast.Attribute)
            and unparsed(used.func.value) == text
            and (isinstance(target, ast.Attribute) or module.enclosing_function(used) is function)
            for used in module.calls_written(method)
        )
        for method in ("step", "zero_grad")
    )


def _takes(module: Module, call: ast.Call, model: str) -> bool:
    """Whether a call is given the parameters of a model, through variables, or builds an optimizer of the file's own
    function from the model itself."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    for argument in given:
        for feeding in calls_feeding(module, argument):
            if isinstance(feeding.func, ast.Attribute) and feeding.func.attr in _PARAMETERS:
                if unparsed(feeding.func.value) == model:
                    return True
    if module.is_subclass(module.type_of(call), "torch.optim.Optimizer"):
        return any(unparsed(argument) == model for argument in given)
    return False


def _is_changed_between(
    module: Module,
    function: ast.AST | None,
    statement: ast.Assign,
    wrap: ast.Call,
    model: str,
    optimizer: ast.expr,
) -> bool:
    """Whether the model becomes another one in between, or the optimizer is built anew afterwards."""
    for other in _assignments(module, function):
        if module.order_of(other) <= module.order_of(statement):
            continue
        target = unparsed(other.targets[0])
        if target == unparsed(optimizer):
            return True
        if target == model and module.order_of(other.value) < module.order_of(wrap):
            if wrap is not other.value and model not in unparsed(other.value):
                return True
    return False
