"""Models of which some parameters are frozen and others are not where FullyShardedDataParallel flattens them."""

from __future__ import annotations

import ast
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed

from ranksafe_rules._shared.call_chains import object_of
from ranksafe_rules.model.frozen_parts_in_flat_parameter.requires_grads import (
    Change,
    Setting,
    changes,
)

SHARDED: Final = "torch.distributed.fsdp.FullyShardedDataParallel"
_ADAPTED: Final = "peft.get_peft_model"
"""Freezes the model and adds what is trained, in the layers or beside them (peft 0.17)."""
_IGNORING: Final = ("ignored_modules", "ignored_parameters", "ignored_states")
_BY_LAYER: Final = frozenset(
    {
        "torch.distributed.fsdp.wrap.transformer_auto_wrap_policy",
        "torch.distributed.fsdp.wrap.ModuleWrapPolicy",
    }
)


def what_freezes(module: Module, wrap: ast.Call) -> ast.AST | None:
    """What freezes a part of the parameters that a call flattens together, or None where that is not sure."""
    if module.qualified_name(wrap.func) != SHARDED:
        return None
    model = module.argument_node(wrap, "module", 0)
    if model is None or any(module.argument(wrap, name) is not None for name in _IGNORING):
        return None
    model = _same_object(module, model)
    inside = module.enclosing_function(wrap) or module.tree
    earlier = [
        change
        for change in changes(module, inside)
        if module.order_of(change.node) < module.order_of(wrap)
        and module.enclosing_function(change.node) is module.enclosing_function(wrap)
    ]
    together = _is_flattened_whole(module, wrap, model)
    if together or _wraps_whole_layers(module, wrap):
        adapted = _adaptation(module, model)
        if adapted is not None and not _is_changed_whole(earlier, unparsed(model)):
            return adapted
    return _mixing(module, wrap, earlier, unparsed(model)) if together else None


def _same_object(module: Module, model: ast.expr) -> ast.expr:
    """The model itself: ``model`` for ``model.cuda()``, also where that has a name of its own."""
    values = module.values(model).known
    made = values[0].node if len(values) == 1 else model
    inner = object_of(made)
    return model if inner is made else inner


def _adaptation(module: Module, model: ast.expr) -> ast.AST | None:
    for value in module.values(model).known:
        if isinstance(value.node, ast.Call):
            if module.qualified_name(value.node.func) == _ADAPTED:
                return value.node
    return None


def _is_changed_whole(earlier: list[Change], model: str) -> bool:
    return any(change.owner == model for change in earlier)


def _mixing(module: Module, wrap: ast.Call, earlier: list[Change], model: str) -> ast.AST | None:
    """The change after which some of the model's parameters require gradients and others do not."""
    whole = Setting.ON
    found: ast.AST | None = None
    for change in earlier:
        if not _runs_before(module, change.node, wrap):
            if change.owner == model:
                return None
            continue
        if change.owner == model:
            whole = change.setting
            found = change.node if whole is Setting.SOME else None
        elif change.owner.startswith(f"{model}.") and change.setting is not whole:
            found = found or change.node
    return found


def _runs_before(module: Module, node: ast.AST, wrap: ast.Call) -> bool:
    """Whether a change is made wherever the model is wrapped, or where an option asks for it: ``if args.freeze:``."""
    around = module.guards(wrap)
    return all(
        guard in around
        or (
            guard.positive
            and isinstance(guard.test, (ast.Name, ast.Attribute))
            and guard.negated() not in around
        )
        for guard in module.guards(node)
    )


def _is_flattened_whole(module: Module, wrap: ast.Call, model: ast.expr) -> bool:
    """Whether nothing splits the model: no policy, no wrapper around a part of it."""
    policy = module.argument(wrap, "auto_wrap_policy", 4)
    if policy is not None and not (
        policy.complete
        and policy.known
        and all(value.is_constant and value.constant is None for value in policy.known)
    ):
        return False
    if module.calls_written("enable_wrap") or module.calls_written("wrap"):
        return False
    written = unparsed(model)
    return all(
        (inner := module.argument_node(other, "module", 0)) is not None
        and unparsed(inner).partition("(")[0].startswith(written)
        and not unparsed(inner).startswith(f"{written}.")
        for other in module.calls(SHARDED)
        if other is not wrap and module.enclosing_function(other) is module.enclosing_function(wrap)
    )


def _wraps_whole_layers(module: Module, wrap: ast.Call) -> bool:
    """Whether the policy wraps layers of a class that is not torch's: adapters are inside of those."""
    policy = module.argument(wrap, "auto_wrap_policy", 4)
    if policy is None or not policy.complete or len(policy.known) != 1:
        return False
    made = policy.known[0].node
    if not isinstance(made, ast.Call):
        return False
    called = module.qualified_name(made.func)
    if called == "functools.partial" and made.args:
        called = module.qualified_name(made.args[0])
        layers = module.argument_node(made, "transformer_layer_cls")
    else:
        layers = module.argument_node(made, "module_classes", 0)
    classes = [] if layers is None else module.values(layers).known
    layers = classes[0].node if len(classes) == 1 else None
    if called not in _BY_LAYER or not isinstance(layers, (ast.Set, ast.List, ast.Tuple)):
        return False
    names = [module.qualified_name(item) for item in layers.elts]
    return all(name is not None and not name.startswith("torch.") for name in names)
