"""What only one arm of a branch on the rank assigns: afterwards the ranks have different values."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ranksafe.semantics.rank_flow.values import (
    Known,
    Origin,
    Sameness,
    Thing,
    Unknown,
    Value,
    origin_of,
)
from ranksafe.semantics.walking import FUNCTIONS

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module
    from ranksafe.semantics.rank_flow.interpreter import Interpreter
    from ranksafe.semantics.rank_flow.run import Heap


class OneSided:
    """Gives constants the branch as their origin, on the ranks that take it and on those that do not."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def mark_taken(self, before: tuple[dict[str, Value], Heap], test: Value) -> None:
        """What the arm changed on this rank since the snapshot `before`."""
        run, origin = self._run, origin_of(test)
        if origin is None:
            return
        _mark(run.frame.variables, before[0], origin)
        for thing, attributes in before[1].items():
            held = run.heap.get(thing)
            if held is not None:
                _mark(held, attributes, origin)

    def mark_told(self, before: tuple[dict[str, Value], Heap], origin: Origin) -> None:
        """What an arm may have changed since the snapshot `before`, which this rank takes by what it alone was told."""
        run = self._run
        _tell(run.frame.variables, before[0], origin)
        for thing, attributes in before[1].items():
            held = run.heap.get(thing)
            if held is not None:
                _tell(held, attributes, origin)

    def mark_skipped(self, arm: list[ast.stmt], test: Value) -> None:
        """What the arm changes on the ranks that take it, and this one does not."""
        origin = origin_of(test)
        if origin is None:
            return
        variables = self._run.frame.variables
        for node in in_arm(arm):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                _keep(variables, node.id, origin)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                self._keep_attributes(node.value, {node.attr}, origin)
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                if isinstance(node.value, ast.Name):
                    _keep(variables, node.value.id, origin)
                elif isinstance(node.value, ast.Attribute):
                    self._keep_attributes(node.value.value, {node.value.attr}, origin)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                self._keep_set(node.func, origin)

    def _keep_set(self, function: ast.Attribute, origin: Origin) -> None:
        """``printer.disable()``"""
        holder = self._holder(function.value)
        method = (
            None
            if holder is None or holder.kind != "object"
            else self._interpreter.functions.method(holder, function.attr)
        )
        if method is not None:
            names = self._interpreter.functions.sets(method)
            self._keep_attributes(function.value, set(names), origin)

    def _keep_attributes(self, owner: ast.expr, names: set[str], origin: Origin) -> None:
        holder = self._holder(owner)
        held = None if holder is None else self._run.heap.get(holder)
        for name in names if held is not None else ():
            assert held is not None
            _keep(held, name, origin)

    def _holder(self, node: ast.expr) -> Thing | None:
        """The object that a name, or an attribute of one, stands for."""
        found: Value | None = None
        if isinstance(node, ast.Name):
            found = self._interpreter.expressions.variable(node.id)
        elif isinstance(node, ast.Attribute):
            owner = self._holder(node.value)
            found = None if owner is None else self._run.attribute(owner, node.attr)
        return found if isinstance(found, Thing) else None


def rest_of_function(module: Module, node: ast.stmt) -> list[ast.stmt]:
    """What comes after a statement in its function, loops around it left out."""
    found: list[ast.stmt] = []
    inner: ast.AST = node
    outer = module.parent(inner)
    while outer is not None:
        for block in (getattr(outer, name, None) for name in ("body", "orelse", "finalbody")):
            if isinstance(block, list) and inner in block:
                found += block[block.index(inner) + 1 :]
        if isinstance(outer, (*FUNCTIONS, ast.Module)):
            break
        inner, outer = outer, module.parent(outer)
    return found


def in_arm(arm: list[ast.stmt]) -> Iterator[ast.AST]:
    """What runs in the arm: definitions in it run later."""
    pending: list[ast.AST] = list(arm)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(node))


def _mark(held: dict[str, Value], before: dict[str, Any], origin: Origin) -> None:
    for name, value in held.items():
        old = before.get(name)
        if isinstance(value, Unknown) and value.sameness < Sameness.DATA:
            if isinstance(old, Known) and old.constant is None and old.origin is None:
                held[name] = replace(value, there=origin)
                continue
        if value is old or not isinstance(value, Known) or value.origin is not None:
            continue
        if isinstance(old, Known) and old.constant != value.constant:
            held[name] = replace(value, origin=origin)


def _tell(held: dict[str, Value], before: dict[str, Any], origin: Origin) -> None:
    """Constants that only this rank may have given another value: how it came to it is its own data."""
    for name, value in held.items():
        old = before.get(name)
        if not isinstance(old, Known) or old.constant is None or value is old:
            continue
        if isinstance(value, Unknown) and not value.sameness.varies:
            held[name] = replace(value, sameness=Sameness.DATA, origin=origin)


def _is_choice(value: Known) -> bool:
    return value.constant is None or isinstance(value.constant, bool)


def _keep(held: dict[str, Value], name: str, origin: Origin) -> None:
    value = held.get(name)
    if isinstance(value, Known) and value.origin is None and _is_choice(value):
        held[name] = replace(value, origin=origin)
    elif isinstance(value, Unknown) and value.steps is not None and value.origin is None:
        if value.sameness is Sameness.SAME:
            held[name] = replace(value, origin=origin)
