"""Loops that take values with ``next`` until there are no more: they run as often as what they take from has values."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ranksafe.rank_flow.values import (
    Abstract,
    Value,
    Varies,
    evenness,
    length_of,
    origin_of,
)
from ranksafe.semantics.module import Module

_ENDS = frozenset({"StopIteration", "Exception", "BaseException"})
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Taken:
    """A call of ``next``, and what it takes from."""

    call: ast.Call
    source: Value


def exhausts(loop: ast.For | ast.While, taken: list[Taken], module: Module) -> Value | None:
    """What a loop takes values from until there are no more, where ranks may have unequally many."""
    for item in taken:
        exact = not isinstance(length_of(item.source), Varies)
        if not evenness(item.source).certain and not exact:
            continue
        if _ends_with(loop, item.call, module):
            steps = length_of(item.source)
            return Abstract(
                Varies.BY_DATA,
                origin_of(item.source),
                length=evenness(item.source),
                steps=None if isinstance(steps, Varies) else steps,
            )
    return None


def _ends_with(loop: ast.For | ast.While, call: ast.Call, module: Module) -> bool:
    """Whether the loop ends when the call has no more values."""
    if len(call.args) > 1:
        return _tests(loop, _given(call, module), call)
    current: ast.AST | None = module.parent(call)
    while current is not None and not isinstance(current, _FUNCTIONS):
        if isinstance(current, ast.Try):
            handler = next((item for item in current.handlers if _catches(item)), None)
            if handler is not None:
                inside = loop in ast.walk(current)
                return inside or _leaves(handler, loop)
        current = module.parent(current)
    return False


def _given(call: ast.Call, module: Module) -> set[str]:
    """Names that a call's result is given."""
    parent = module.parent(call)
    if isinstance(parent, ast.NamedExpr):
        return {parent.target.id}
    if isinstance(parent, ast.Assign):
        return {item.id for item in parent.targets if isinstance(item, ast.Name)}
    return set()


def _tests(loop: ast.For | ast.While, names: set[str], call: ast.Call | None = None) -> bool:
    """Whether the loop is left by a test of one of the names, not of what was made of it."""
    if isinstance(loop, ast.While) and _asks_for(loop.test, names, call):
        return True
    return any(
        isinstance(node, ast.If)
        and _asks_for(node.test, names, call)
        and any(isinstance(item, (ast.Break, ast.Return)) for item in (*node.body, *node.orelse))
        for node in _inside(loop)
    )


def _asks_for(test: ast.expr, names: set[str], call: ast.Call | None) -> bool:
    while isinstance(test, ast.UnaryOp):
        test = test.operand
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.IsNot, ast.Eq)):
        test = test.left
    if isinstance(test, ast.NamedExpr):
        return test.value is call
    return isinstance(test, ast.Name) and test.id in names


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(item, ast.Name) and item.id in _ENDS for item in types)


def _leaves(handler: ast.ExceptHandler, loop: ast.For | ast.While) -> bool:
    """Whether a handler ends the loop instead of starting again."""
    nodes = [node for statement in handler.body for node in ast.walk(statement)]
    if any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("iter", "next")
        for node in nodes
    ):
        return False
    if any(isinstance(item, (ast.Break, ast.Return)) for item in handler.body):
        return True
    flags = {
        target.id
        for node in handler.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return bool(flags) and _tests(loop, flags)


def _inside(loop: ast.For | ast.While) -> Iterator[ast.AST]:
    """Nodes of the loop's own body: loops and functions inside left out."""
    pending: list[ast.AST] = list(loop.body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (*_LOOPS, *_FUNCTIONS)):
            pending += ast.iter_child_nodes(node)


def breaks_in_handler(loop: ast.For | ast.While) -> bool:
    """Whether an exception may end the loop."""
    return any(
        isinstance(node, ast.ExceptHandler) and any(isinstance(i, ast.Break) for i in node.body)
        for node in _inside(loop)
    )
