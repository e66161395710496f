"""Changes of a wrapped model's parameters that its wrapper does not learn of."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed

from ranksafe_rules._shared.inner_models import wrapper_of
from ranksafe_rules._shared.wrapped_models import Wrapped, Wrapper, wraps_of

FLAG: Final = "requires_grad"
_LISTS: Final = frozenset(
    {"parameters", "named_parameters", "modules", "named_modules", "children"}
)


class Kind(Enum):
    """What a change does to the parameters."""

    FROZEN = "frozen"
    TRAINED = "trained"
    """Gradients are wanted from now on."""
    NEW = "new"
    """There are others now."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change."""

    kind: Kind
    what: ast.expr
    """What is changed, as written."""
    wrapped: tuple[Wrapped, ...]
    whole: bool
    """Whether all of the model is changed."""


def change_at(module: Module, node: ast.AST) -> Change | None:
    """The change that a call or an assignment makes to a model inside DistributedDataParallel."""
    if isinstance(node, ast.Call):
        return _change_by_call(module, node)
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return _change_by_assignment(module, node, node.targets[0])
    return None


def _change_by_call(module: Module, call: ast.Call) -> Change | None:
    function = call.func
    if not isinstance(function, ast.Attribute):
        return None
    if function.attr == "requires_grad_":
        kind = _kind_of(_wanted(call))
        return None if kind is None else _change(module, kind, function.value)
    if function.attr == "add_module":
        return _change(module, Kind.NEW, function.value)
    return None


def _change_by_assignment(module: Module, node: ast.Assign, target: ast.expr) -> Change | None:
    if isinstance(target, ast.Attribute) and target.attr == FLAG:
        kind = _kind_of(node.value)
        models = list(_models_of_parameter(module, target.value))
        if kind is None or not models:
            return None
        change = _change(module, kind, models[0])
        # A condition on the name or the number of the parameter chooses some of them.
        if change is not None and _is_chosen(module, node):
            return Change(change.kind, change.what, change.wrapped, False)
        return change
    while isinstance(target, ast.Subscript):
        target = target.value
    if not isinstance(target, ast.Attribute):
        return None
    if not module.is_subclass(module.type_of(node.value), "torch.nn.Module"):
        return None
    if target.attr != "module" and isinstance(target.value, (ast.Name, ast.Attribute)):
        if wraps_of(module, target.value).known:
            # A child of the wrapper itself takes no part in the forward.
            return None
    return _change(module, Kind.NEW, target.value)


def _kind_of(value: ast.expr) -> Kind | None:
    if not isinstance(value, ast.Constant) or not isinstance(value.value, bool):
        return None
    return Kind.TRAINED if value.value else Kind.FROZEN


def _models_of_parameter(module: Module, parameter: ast.expr) -> Iterator[ast.expr]:
    """``model`` for ``p`` in ``for p in model.parameters()``; ``model.fc`` for ``model.fc.weight``."""
    if isinstance(parameter, ast.Attribute):
        yield parameter.value
        return
    if not isinstance(parameter, ast.Name):
        return
    loop = module.parent(parameter)
    while loop is not None and not isinstance(loop, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if isinstance(loop, ast.For) and parameter.id in {
            item.id for item in ast.walk(loop.target) if isinstance(item, ast.Name)
        }:
            if isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Attribute):
                if loop.iter.func.attr in _LISTS:
                    yield loop.iter.func.value
            return
        loop = module.parent(loop)


def settings_of_gradients(module: Module) -> Iterator[tuple[ast.Call | ast.Assign, ast.expr]]:
    """What says of something in the file whether gradients are wanted of it, each with the value."""
    for call in module.calls_written("requires_grad_"):
        yield call, _wanted(call)
    for node in module.nodes(ast.Assign):
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        if isinstance(target, ast.Attribute) and target.attr == FLAG:
            yield node, node.value


def _wanted(call: ast.Call) -> ast.expr:
    """What ``requires_grad_`` is given; without anything gradients are wanted."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return given[0] if given else ast.Constant(True)


def _is_chosen(module: Module, node: ast.AST) -> bool:
    parent = module.parent(node)
    while parent is not None and not isinstance(parent, ast.For):
        if isinstance(parent, ast.If):
            return True
        parent = module.parent(parent)
    return False


def _change(module: Module, kind: Kind, what: ast.expr) -> Change | None:
    """The change, where ``what`` is a wrapper, the model inside one, or a part of that."""
    part, whole = what, True
    while isinstance(part, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
        wrapper = part if isinstance(part, (ast.Name, ast.Attribute)) else None
        known = () if wrapper is None else wraps_of(module, wrapper).known
        if not known:
            inside = wrapper_of(module, part)
            known = () if inside is None else wraps_of(module, inside).known
        distributed = tuple(item for item in known if item.how is not Wrapper.DATA_PARALLEL)
        if distributed:
            return Change(kind, what, distributed, whole)
        if isinstance(part, ast.Name) or not isinstance(part, (ast.Attribute, ast.Subscript)):
            return None
        part, whole = part.value, False
    return None


def is_toggled(module: Module, change: Change) -> bool:
    """Whether the file also does the opposite to the same: then it knows for how long."""
    opposite = {Kind.FROZEN: Kind.TRAINED, Kind.TRAINED: Kind.FROZEN}.get(change.kind)
    if opposite is None:
        return False
    text = unparsed(change.what)
    for candidate, _ in settings_of_gradients(module):
        other = change_at(module, candidate)
        if other is not None and other.kind is opposite and unparsed(other.what) == text:
            return True
    return False
