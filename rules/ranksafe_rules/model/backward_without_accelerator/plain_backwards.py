"""Backwards of a loss of a prepared model that accelerate does not hear of."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Final

from ranksafe.semantics.guards import GuardKind
from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed

from ranksafe_rules._shared.loss_inputs import calls_feeding
from ranksafe_rules._shared.wrapped_models import Wrapper, is_prepare, wraps_of

_ACCUMULATION: Final = re.compile(r"accum", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PlainBackward:
    """``loss.backward()`` with accelerate."""

    loss: ast.expr
    accelerator: str | None
    """How the accelerator is written there, if it can be and is always there."""
    optional: bool
    """Whether the program may run without an accelerator."""
    divided: bool
    """Whether the program itself divides the loss by the number of accumulated steps."""


def plain_backward(module: Module, call: ast.Call) -> PlainBackward | None:
    """What a call of `backward` is, if its loss comes from a model that accelerate prepared."""
    function = call.func
    if not isinstance(function, ast.Attribute) or call.args:
        return None
    loss = function.value
    prepare = _prepare_of(module, loss)
    if prepare is None:
        return None
    optional = _may_be_missing(module, call, prepare)
    accelerator = None if optional else _accelerator_at(module, call, prepare)
    return PlainBackward(loss, accelerator, optional, _is_divided(module, loss))


def _prepare_of(module: Module, loss: ast.expr) -> ast.Call | None:
    """The `prepare` of a model that the loss is computed by."""
    for call in calls_feeding(module, loss):
        part: ast.expr = call.func
        if isinstance(part, ast.Attribute) and part.attr == "scale":
            # ``scaler.scale(loss).backward()``: a scaler of one's own.
            return None
        while True:
            if isinstance(part, (ast.Name, ast.Attribute)):
                found = _prepare_of_model(module, part)
                if found is not None:
                    return found
            if not isinstance(part, ast.Attribute):
                break
            part = part.value
    return None


def _prepare_of_model(module: Module, model: ast.expr) -> ast.Call | None:
    for wrapped in wraps_of(module, model).known:
        if wrapped.how is Wrapper.PREPARED and isinstance(wrapped.place, ast.Call):
            return wrapped.place
    text = unparsed(model)
    for word in ("prepare", "prepare_model"):
        for call in module.calls_written(word):
            if text in _targets(module, call) and _is_visible(module, call, model):
                if is_prepare(module, call):
                    return call
    return None


def _targets(module: Module, call: ast.Call) -> set[str]:
    statement = module.parent(call)
    if not isinstance(statement, ast.Assign):
        return set()
    found = set()
    for target in statement.targets:
        elements = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        found |= {unparsed(element) for element in elements}
    return found


def _is_visible(module: Module, call: ast.Call, use: ast.expr) -> bool:
    """Whether a name or an attribute of self means the same at both places."""
    if module.enclosing_function(call) is module.enclosing_function(use):
        return module.order_of(call) < module.order_of(use)
    if not isinstance(use, ast.Attribute):
        return False
    cls = module.class_of_self(use.value)
    return cls is not None and cls is module.enclosing_class(call)


def _accelerator_at(module: Module, use: ast.Call, prepare: ast.Call) -> str | None:
    assert isinstance(prepare.func, ast.Attribute)
    accelerator = prepare.func.value
    text = module.text_of(accelerator)
    if module.enclosing_function(prepare) is module.enclosing_function(use):
        return text
    if isinstance(accelerator, ast.Attribute):
        cls = module.class_of_self(accelerator.value)
        return text if cls is not None and cls is module.enclosing_class(use) else None
    function = module.enclosing_function(use)
    given = [] if function is None else [*function.args.args, *function.args.kwonlyargs]
    return text if any(item.arg == text for item in given) else None


def _may_be_missing(module: Module, use: ast.Call, prepare: ast.Call) -> bool:
    """Whether conditions that ``use`` is not under ask for the accelerator before it prepares, or decide whether one is
    made: ``if self.accelerator is not None: ... = self.accelerator.prepare(...)``."""
    assert isinstance(prepare.func, ast.Attribute)
    accelerator = prepare.func.value
    text = unparsed(accelerator)
    asked = [guard for guard in module.guards(prepare) if _asks_for(guard.test, text)]
    for binding in _bindings(module, accelerator):
        asked += [guard for guard in module.guards(binding) if guard.kind is GuardKind.OTHER]
    here = {(unparsed(guard.test), guard.positive) for guard in module.guards(use)}
    return any(
        not guard.is_demanded and (unparsed(guard.test), guard.positive) not in here
        for guard in asked
    )


def _asks_for(test: ast.expr, text: str) -> bool:
    """Whether a condition asks if something is there: ``x``, ``x is not None``, also as a part."""
    if isinstance(test, ast.BoolOp):
        return any(_asks_for(part, text) for part in test.values)
    if isinstance(test, ast.UnaryOp):
        return _asks_for(test.operand, text)
    if isinstance(test, ast.Compare):
        bound = test.comparators[0]
        return (
            unparsed(test.left) == text and isinstance(bound, ast.Constant) and bound.value is None
        )
    return unparsed(test) == text


def _bindings(module: Module, accelerator: ast.expr) -> list[ast.AST]:
    """Where an accelerator gets its name, or its only attribute."""
    if isinstance(accelerator, ast.Name):
        found = module.bindings(accelerator)[1]
    elif isinstance(accelerator, ast.Attribute):
        cls = module.class_of_self(accelerator.value)
        found = [] if cls is None else list(module.attribute_stores(cls, accelerator.attr))
    else:
        found = []
    return found if len(found) == 1 else []


def _is_divided(module: Module, loss: ast.expr) -> bool:
    """``loss = loss / args.gradient_accumulation_steps``, ``loss /= accumulation``."""
    function = module.enclosing_function(loss)
    inside = function if function is not None else module.tree
    for node in ast.walk(inside):
        divisor = None
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.Div):
            divisor = node.right if isinstance(node, ast.BinOp) else node.value
        if divisor is not None and _ACCUMULATION.search(unparsed(divisor)):
            return True
    return False
