"""Layers that one forward uses several times, at least once with reentrant checkpointing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.structure import Function
from ranksafe.semantics.walking import unparsed

from ranksafe_rules._shared.loss_inputs import without_gradients
from ranksafe_rules._shared.reentrant_checkpoints import classes_of, is_reentrant_checkpoint
from ranksafe_rules._shared.trained_layers import has_parameters
from ranksafe_rules._shared.wrapped_models import DISTRIBUTED, is_possible

_OPTIONS: Final = {"find_unused_parameters": 8, "static_graph": 11}
"""Arguments of DistributedDataParallel (torch 2.13.0): with the search another rule says it, with a static graph it
works."""
_OTHERWISE: Final = re.compile(r"requires_grad(_\(|\s*=[^=]|[\"'])|_set_static_graph|\bno_sync\b")
_LOOPS: Final = (ast.For, ast.While)


@dataclass(frozen=True, slots=True)
class UsedAgain:
    """A layer whose gradients come more than once in a backward."""

    calls: tuple[ast.Call, ...]
    """The reentrant checkpoints of the layer, in source order."""
    other: ast.AST
    """Another use, or the loop that repeats the only one."""


def layers_used_again(module: Module, wrap: ast.Call) -> list[UsedAgain]:
    """Those of the model that a call wraps, where its classes are in this file."""
    if module.qualified_name(wrap.func) != DISTRIBUTED or module.text_says(_may_be_otherwise):
        return []
    for name, position in _OPTIONS.items():
        given = module.argument(wrap, name, position)
        if given is not None and given.only_constant() is not False:
            return []
    model = module.argument_node(wrap, "module", 0)
    cls = None if model is None else module.class_named(module.type_of(model))
    if cls is None:
        return []
    return [
        found
        for part in classes_of(module, cls)
        for method in module.methods(part)
        for found in _used_again_in(module, part, method)
    ]


def _may_be_otherwise(text: str) -> bool:
    return _OTHERWISE.search(text) is not None


def _used_again_in(module: Module, cls: ast.ClassDef, method: Function) -> Iterator[UsedAgain]:
    checkpoints: dict[str, list[ast.Call]] = {}
    plain: dict[str, list[ast.Call]] = {}
    for call in module.nodes(ast.Call, inside=method):
        assert isinstance(call, ast.Call)
        if without_gradients(module, call) or module.enclosing_function(call) is not method:
            continue
        if is_reentrant_checkpoint(module, call):
            layer = _layer(module, cls, call.args[0]) if call.args else None
            if layer is not None and _has_gradients_to_pass(module, cls, call):
                checkpoints.setdefault(layer, []).append(call)
        else:
            layer = _layer(module, cls, call.func)
            if layer is not None:
                plain.setdefault(layer, []).append(call)
    for layer, calls in checkpoints.items():
        other = _other_use(module, calls, plain.get(layer, []))
        if other is not None and _is_trained(module, cls, layer):
            yield UsedAgain(tuple(calls), other)


def _layer(module: Module, cls: ast.ClassDef, node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute) and module.class_of_self(node.value) is cls:
        return node.attr
    return None


def _has_gradients_to_pass(module: Module, cls: ast.ClassDef, call: ast.Call) -> bool:
    """Whether an argument is certainly computed by a layer: a reentrant checkpoint of raw input has no gradients."""
    for argument in call.args[1:]:
        if not isinstance(argument, ast.Name):
            continue
        for value in module.flow.assigned_values(argument):
            if isinstance(value, ast.Call) and _layer(module, cls, value.func) is not None:
                return True
            if isinstance(value, ast.Call) and value is not call:
                if is_reentrant_checkpoint(module, value):
                    if _has_gradients_to_pass(module, cls, value):
                        return True
    return False


def _other_use(module: Module, calls: list[ast.Call], plain: list[ast.Call]) -> ast.AST | None:
    """A second use of the layer in the same forward: not in the other arm of a condition."""
    first = calls[0]
    for other in (*calls[1:], *plain):
        if is_possible(module, (*module.guards(first), *module.guards(other))):
            return other
    for call in calls:
        loop = _loop_of(module, call)
        if loop is not None and not set(module.guards(call)) - set(module.guards(loop)):
            return loop
    return None


def _loop_of(module: Module, call: ast.Call) -> ast.For | ast.While | None:
    current = module.parent(call)
    while current is not None and not isinstance(current, (ast.FunctionDef, ast.Lambda)):
        if isinstance(current, _LOOPS):
            if isinstance(current, ast.For) and unparsed(current.iter) == "range(1)":
                return None
            return current
        current = module.parent(current)
    return None


def _is_trained(module: Module, cls: ast.ClassDef, layer: str) -> bool:
    """Whether the layer is assigned once, and has parameters: itself, or what its class of this file makes."""
    stores = module.attribute_stores(cls, layer)
    value = module.assigned_to_attribute(stores[0]) if len(stores) == 1 else None
    if value is None:
        return False
    if has_parameters(module, value):
        return True
    own = module.class_named(module.type_of(value))
    setup = None if own is None else module.method(own, "__init__")
    return setup is not None and any(
        isinstance(statement, ast.Assign) and has_parameters(module, statement.value)
        for statement in setup.body
    )
