"""What turns the gradients of a model, or of a part of it, on and off."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed

_PARAMETERS: Final = frozenset({"parameters", "named_parameters"})


class Setting(Enum):
    """What the gradients are set to."""

    OFF = "off"
    ON = "on"
    SOME = "some"
    """On for some parameters and off for others: by a condition, or by what is assigned."""


@dataclass(frozen=True, slots=True)
class Change:
    """A statement or call that sets ``requires_grad``."""

    node: ast.AST
    owner: str
    """The module or parameter, as written."""
    setting: Setting


def changes(module: Module, inside: ast.AST) -> list[Change]:
    """Those of a function or of the file's statements, in source order."""
    found = [*_calls(module, inside), *_assignments(module, inside), *_loops(module, inside)]
    return sorted(found, key=lambda change: module.order_of(change.node))


def _calls(module: Module, inside: ast.AST) -> Iterator[Change]:
    for call in module.nodes(ast.Call, inside=inside):
        assert isinstance(call, ast.Call)
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "requires_grad_":
            continue
        if _loop_over_parameters(module, call) is not None:
            continue
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        setting = Setting.ON if not given else _setting(given[0])
        yield Change(call, unparsed(call.func.value), setting)


def _assignments(module: Module, inside: ast.AST) -> Iterator[Change]:
    """``model.head.weight.requires_grad = False``."""
    for node in module.nodes(ast.Assign, inside=inside):
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        if isinstance(target, ast.Attribute) and target.attr == "requires_grad":
            if _loop_over_parameters(module, node) is None:
                yield Change(node, unparsed(target.value), _setting(node.value))


def _loops(module: Module, inside: ast.AST) -> Iterator[Change]:
    """``for parameter in model.parameters(): parameter.requires_grad = False``."""
    for loop in module.nodes(ast.For, inside=inside):
        assert isinstance(loop, ast.For)
        owner = _iterated(loop)
        settings = {
            setting for statement in loop.body for setting in _set_in(statement, certain=True)
        }
        if owner is not None and settings:
            setting = settings.pop() if len(settings) == 1 else Setting.SOME
            yield Change(loop, unparsed(owner), setting)


def _iterated(loop: ast.For) -> ast.expr | None:
    """The module whose parameters a loop goes through."""
    call = loop.iter
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        if call.func.attr in _PARAMETERS:
            return call.func.value
    return None


def _set_in(statement: ast.stmt, *, certain: bool) -> Iterator[Setting]:
    """What a statement of a loop's body sets the loop's parameter to."""
    if isinstance(statement, ast.If):
        for inner in (*statement.body, *statement.orelse):
            yield from _set_in(inner, certain=False)
        if any(isinstance(inner, ast.Continue) for inner in statement.body):
            yield Setting.SOME
    elif isinstance(statement, ast.Assign):
        target = statement.targets[0]
        if isinstance(target, ast.Attribute) and target.attr == "requires_grad":
            yield _setting(statement.value) if certain else Setting.SOME
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_":
            yield _setting(call.args[0]) if certain and call.args else Setting.SOME


def _loop_over_parameters(module: Module, node: ast.AST) -> ast.For | None:
    parent = module.parent(node)
    while parent is not None and not isinstance(parent, (ast.FunctionDef, ast.Module)):
        if isinstance(parent, ast.For) and _iterated(parent) is not None:
            return parent
        parent = module.parent(parent)
    return None


def _setting(value: ast.expr) -> Setting:
    if isinstance(value, ast.Constant):
        return Setting.ON if value.value else Setting.OFF
    return Setting.SOME
