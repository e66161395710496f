"""Which exceptions a rank's own data raises: what a ``try`` does with values that differ between ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.values import Missing, Sameness, Unknown, Value, origin_of
from ranksafe.semantics.units import callee_name
from ranksafe.semantics.walking import FUNCTIONS

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

_HARMLESS = frozenset(
    {"print", "append", "info", "debug", "warning", "error", "str", "len", "isinstance", "update", "add", "to"}
    | {"cuda", "cpu", "item", "detach", "clone", "close", "makedirs", "mkdir", "remove", "unlink", "set_device"}
    | {"get", "keys", "items", "values", "format", "join", "exit", "next", "iter", "range", "zip", "enumerate"}
)  # fmt: skip
"""What they are given does not decide whether they raise, or is the rank itself."""


def raised_by_data(interpreter: Interpreter, body: list[ast.stmt]) -> Unknown | None:
    """Whether the body raises, where that depends on what this rank's data is; None where it does not.

    The body has run: variables are what they are at its end.
    """
    for node in _done_in(body):
        if isinstance(node, ast.Call):
            if callee_name(node) in _HARMLESS:
                continue
            asked = [*node.args, *(item.value for item in node.keywords)]
            if isinstance(node.func, ast.Attribute):
                asked.append(node.func.value)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            asked = [node.value]
        else:
            continue
        for expression in asked:
            if not isinstance(expression, (ast.Name, ast.Attribute, ast.Subscript)):
                continue
            value = interpreter.expressions.look(expression)
            if _is_own_data(value):
                return Unknown(Sameness.DATA, origin_of(value), decides=True)
    return None


def _is_own_data(value: Value) -> bool:
    """Whether a value is one of the rank's own: no number that was computed from the rank."""
    return isinstance(value, Unknown) and not isinstance(value, Missing) and value.sameness.varies


def _done_in(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """What the statements do, without what they only define."""
    pending: list[ast.AST] = list(reversed(body))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(node))
