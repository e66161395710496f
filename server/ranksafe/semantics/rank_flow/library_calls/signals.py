"""Handlers of signals: each process gets its signals by itself, so what a handler sets differs between ranks."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.arguments import Given
from ranksafe.semantics.rank_flow.run import Frame
from ranksafe.semantics.rank_flow.values import NOTHING_KNOWN, Origin, Sameness, Thing, Unknown

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter
    from ranksafe.semantics.rank_flow.values import Value

_HANDLER_AT = {"signal.signal": 1}
_HANDLER_IN_METHOD = {"add_signal_handler": 1}
"""Of asyncio's event loops."""


def note_signal(
    interpreter: Interpreter, node: ast.Call, name: str | None, arguments: list[Value]
) -> None:
    """After ``signal.signal(number, handler)``: what the handler sets may be set on this rank and not on others."""
    word = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    position = _HANDLER_AT.get(name or "", _HANDLER_IN_METHOD.get(word))
    if position is None or position >= len(node.args):
        return
    function = arguments[position]
    if not isinstance(function, Thing) or function.kind != "function":
        return
    run = interpreter.run
    closure = function.detail if isinstance(function.detail, Frame) else None
    owner = function.detail if isinstance(function.detail, Thing) else None
    variables, heap = run.snapshot()
    globals_ = dict(run.globals)
    held = {} if closure is None else dict(closure.variables)
    origin = run.origin(node, Sameness.DATA)
    with run.unnoticed():
        given = Given([NOTHING_KNOWN, NOTHING_KNOWN])
        interpreter.followed.entered(node, function, given, owner)
    if closure is not None:
        _differ(closure.variables, held, origin)
    if closure is not run.frame:
        run.frame.variables = variables
    declared = interpreter.functions.declared(function.node or node, ast.Global)
    for key, value in run.globals.items():
        if value is not globals_.get(key) and key[1] in declared:
            run.globals[key] = Unknown(Sameness.DATA, origin, decides=True)
    for thing, attributes in run.heap.items():
        _differ(attributes, heap.get(thing, {}), origin)


def _differ(now: dict[str, Value], before: dict[str, Value], origin: Origin) -> None:
    for name, value in now.items():
        if name in before and value is not before[name]:
            now[name] = Unknown(Sameness.DATA, origin, decides=True)
