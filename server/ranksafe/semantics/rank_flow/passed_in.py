"""What a call does to the objects and containers that it is passed: the caller sees them changed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.run import Frame
from ranksafe.semantics.rank_flow.values import Many, Thing, Unknown, Value
from ranksafe.semantics.walking import FUNCTIONS

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

OPEN = "open"
"""The kind of an object of which nothing is known but the attributes that were set."""


def opened(interpreter: Interpreter, target: ast.expr, value: Value) -> Thing | None:
    """The object that a variable of unknown value holds from now on, since an attribute of it is set; else None."""
    if not isinstance(target, ast.Name) or not _is_blank(value):
        return None
    run = interpreter.run
    if target.id not in run.frame.variables:
        return None
    made = Thing(OPEN, node=target, module=run.module)
    run.frame.variables[target.id] = made
    return made


def open_arguments(interpreter: Interpreter, call: ast.AST, function: Thing, skip: int) -> None:
    """Before ``setup(args)``: what the function sets is seen afterwards; `skip`: parameters that are not written."""
    for argument, parameter in _pairs(call, function.node, skip):
        value = interpreter.expressions.variable(argument.id)
        if value is None or not _is_blank(value) or function.node is None:
            continue
        if parameter in _changes(interpreter, function.node)[0]:
            opened(interpreter, argument, value)


def keep_changes(
    interpreter: Interpreter, call: ast.AST, function: Thing, frame: Frame, skip: int
) -> None:
    """After ``fill(stats)``: a list or dictionary that was passed holds what the function has put into it."""
    for argument, parameter in _pairs(call, function.node, skip):
        before = interpreter.run.frame.variables.get(argument.id)
        after = frame.variables.get(parameter)
        held = isinstance(before, Many) or (
            isinstance(before, Unknown) and before.entries is not None
        )
        if not held or after is None or after is before or function.node is None:
            continue
        if interpreter.lists.is_here(argument):
            if parameter not in _changes(interpreter, function.node)[1]:
                interpreter.run.frame.variables[argument.id] = after


def _pairs(call: ast.AST, body: ast.AST | None, skip: int) -> Iterator[tuple[ast.Name, str]]:
    """Variables that are passed, with the parameters that they are bound to."""
    if not isinstance(call, ast.Call) or not isinstance(body, FUNCTIONS):
        return
    parameters = [item.arg for item in (*body.args.posonlyargs, *body.args.args)][skip:]
    for argument, parameter in zip(call.args, parameters, strict=False):
        if isinstance(argument, ast.Starred):
            break
        if isinstance(argument, ast.Name):
            yield argument, parameter
    for keyword in call.keywords:
        if keyword.arg in parameters and isinstance(keyword.value, ast.Name):
            yield keyword.value, str(keyword.arg)


def _is_blank(value: Value) -> bool:
    return isinstance(value, Unknown) and value == Unknown() and value.each is None


def _changes(interpreter: Interpreter, body: ast.AST) -> tuple[frozenset[str], frozenset[str]]:
    """Names of which a function sets attributes, and names that it assigns."""
    known = interpreter.functions.changes
    found = known.get(id(body))
    if found is None:
        opened_, rebound = set(), set()
        for item in ast.walk(body):
            if isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store):
                opened_.add(getattr(item.value, "id", ""))
            elif isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
                rebound.add(item.id)
        found = known[id(body)] = (frozenset(opened_), frozenset(rebound))
    return found
