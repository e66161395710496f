"""Models of which no parameter requires a gradient where they are wrapped."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.semantics.guards import Guard
from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed

from ranksafe_rules._shared.call_chains import SAME_OBJECT, names_of_result, object_of
from ranksafe_rules._shared.wrapped_models import DISTRIBUTED

_LEAVING_GRADIENTS: Final = SAME_OBJECT - {"requires_grad_"}
_READING: Final = frozenset(
    {"parameters", "named_parameters", "state_dict", "load_state_dict", "modules", "children"}
)


def freezing_of(module: Module, wrap: ast.Call) -> ast.AST | None:
    """What freezes all parameters of the model that a call wraps, or None where that is not certain."""
    if module.qualified_name(wrap.func) != DISTRIBUTED:
        return None
    model = module.argument_node(wrap, "module", 0)
    if model is None:
        return None
    while isinstance(model, ast.Call):
        if not isinstance(model.func, ast.Attribute):
            return None
        if _is_freezing(model):
            return model
        if model.func.attr not in _LEAVING_GRADIENTS:
            return None
        model = model.func.value
    if not isinstance(model, (ast.Name, ast.Attribute)):
        return None
    text = unparsed(model)
    found = None
    for node in _freezings(module, wrap, text):
        if found is None or module.order_of(node) > module.order_of(found):
            found = node
    if found is None or _may_train_again(module, found, wrap, text):
        return None
    return found


def _is_freezing(call: ast.Call) -> bool:
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr != "requires_grad_":
        return False
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value is False


def _freezings(module: Module, wrap: ast.Call, model: str) -> Iterator[ast.AST]:
    """Before ``wrap`` in its function, and wherever that runs: ``model.requires_grad_(False)``, as a part of
    ``model = Net().requires_grad_(False)`` too, and a loop that sets it for every parameter."""
    function = module.enclosing_function(wrap)
    guards = set(module.guards(wrap))
    for call in module.calls_written("requires_grad_"):
        if _is_freezing(call) and _is_before(module, call, wrap, function, guards):
            assert isinstance(call.func, ast.Attribute)
            if unparsed(object_of(call.func.value)) == model or model in names_of_result(
                module, call
            ):
                yield call
    for word in ("parameters", "named_parameters"):
        for call in module.calls_written(word):
            loop = module.parent(call)
            if isinstance(loop, ast.For) and loop.iter is call and _freezes_each(loop):
                assert isinstance(call.func, ast.Attribute)
                if _is_before(module, loop, wrap, function, guards):
                    if unparsed(call.func.value) == model:
                        yield loop


def _is_before(
    module: Module, node: ast.AST, wrap: ast.Call, function: ast.AST | None, guards: set[Guard]
) -> bool:
    return (
        module.enclosing_function(node) is function
        and module.order_of(node) < module.order_of(wrap)
        and set(module.guards(node)) <= guards
    )


def _freezes_each(loop: ast.For) -> bool:
    """Whether the body, without a condition, turns off the gradients of the loop's last variable."""
    names = [item.id for item in ast.walk(loop.target) if isinstance(item, ast.Name)]
    for statement in loop.body:
        if isinstance(statement, (ast.If, ast.Continue, ast.Break)):
            return False
    for statement in loop.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            target = statement.targets[0]
            if isinstance(target, ast.Attribute) and target.attr == "requires_grad":
                if isinstance(target.value, ast.Name) and target.value.id in names:
                    return statement.value.value is False
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            if _is_freezing(statement.value):
                return True
    return False


def _may_train_again(module: Module, freezing: ast.AST, wrap: ast.Call, model: str) -> bool:
    """Whether something between the two may give the model parameters that require gradients: an assignment, a call
    that gets the model, a gradient that is turned on."""
    function = module.enclosing_function(wrap)
    own = {_statement(module, freezing), _statement(module, wrap)}
    inside = function if function is not None else module.tree
    for node in ast.walk(inside):
        if not isinstance(node, (ast.Name, ast.Attribute)) or unparsed(node) != model:
            continue
        if not module.order_of(freezing) < module.order_of(node) < module.order_of(wrap):
            continue
        statement = _statement(module, node)
        if statement in own or module.is_inside(node, freezing):
            continue
        if not _only_reads(module, node):
            return True
    return False


def _statement(module: Module, node: ast.AST) -> ast.AST | None:
    current: ast.AST | None = node
    while current is not None and not isinstance(current, ast.stmt):
        current = module.parent(current)
    return current


def _only_reads(module: Module, node: ast.AST) -> bool:
    """``model.eval()``, ``model = model.cuda()``, ``model.load_state_dict(...)``."""
    parent = module.parent(node)
    if isinstance(parent, ast.Assign) and node in parent.targets:
        return unparsed(object_of(parent.value)) == unparsed(node)
    if not isinstance(parent, ast.Attribute) or parent.attr not in _LEAVING_GRADIENTS | _READING:
        return False
    call = module.parent(parent)
    if not isinstance(call, ast.Call):
        return False
    loop = module.parent(call)
    return not (isinstance(loop, ast.For) and "requires_grad" in unparsed(loop))
