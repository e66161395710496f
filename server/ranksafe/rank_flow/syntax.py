"""What the text of a statement or function says, found once for each node."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from ranksafe.semantics.module import Module
from ranksafe.semantics.units import callee_name
from ranksafe.semantics.walking import FUNCTIONS, children, nodes_in

Node = TypeVar("Node", bound=ast.AST)
Found = TypeVar("Found")
_SCOPES = (*FUNCTIONS, ast.Lambda, ast.ClassDef)
_NOT_ITERATED = frozenset({"contextmanager", "asynccontextmanager", "fixture"})


def once_for_each_node(compute: Callable[[Node], Found]) -> Callable[[Node], Found]:
    """Keep what a function finds in a node for as long as the node lives.

    Not in classes and files: their statements are exchanged while somebody types.
    """
    known: WeakKeyDictionary[Node, Found] = WeakKeyDictionary()

    @wraps(compute)
    def answer(node: Node) -> Found:
        if isinstance(node, (ast.ClassDef, ast.Module)):
            return compute(node)
        found = known.get(node)
        if found is None:
            found = known[node] = compute(node)
        return found

    return answer


def last_segment(node: ast.expr) -> str:
    """``c`` of ``a.b.c``; empty for what has no name."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def parameter_names(arguments: ast.arguments) -> list[str]:
    """The names of all parameters but ``*args`` and ``**kwargs``."""
    return [item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def argument(node: ast.Call, position: int, *keywords: str) -> ast.expr | None:
    """An argument of a call as written."""
    for item in node.keywords:
        if item.arg in keywords:
            return item.value
    return node.args[position] if len(node.args) > position else None


@once_for_each_node
def called_names(node: ast.AST) -> frozenset[str]:
    """Last segments of all that is called inside a node."""
    calls = (item for item in nodes_in(node) if isinstance(item, ast.Call))
    return frozenset(name for call in calls if (name := callee_name(call)) is not None)


@once_for_each_node
def has_break(loop: ast.AST) -> bool:
    """Whether a ``break`` stands anywhere in a loop's body."""
    body: list[ast.stmt] = loop.body  # type: ignore[attr-defined]
    return any(isinstance(node, ast.Break) for item in body for node in nodes_in(item))


@once_for_each_node
def is_generator(function: ast.AST) -> bool:
    """Whether a call of the function gives something to iterate."""
    return isinstance(function, FUNCTIONS) and _yields(function) and not _is_context(function)


def _yields(function: ast.AST) -> bool:
    pending = children(function)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, _SCOPES):
            pending += children(node)
    return False


def _is_context(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        getattr(part, "id", getattr(part, "attr", "")) in _NOT_ITERATED
        for decorator in function.decorator_list
        for part in ast.walk(decorator)
    )


def turns_gradients_off(module: Module, *nodes: ast.expr) -> bool:
    """Whether one of some context managers or decorators, called or not, is one without gradients."""
    names = {module.qualified_name(getattr(node, "func", node)) for node in nodes}
    return not names.isdisjoint({"torch.no_grad", "torch.inference_mode"})
