"""Contexts: ``with`` statements, some of which say what collectives inside do."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.generators.generators import is_context
from ranksafe.semantics.rank_flow.generators.steps import without_yields, yields_in
from ranksafe.semantics.rank_flow.run import MAXIMUM_DEPTH, Handler
from ranksafe.semantics.rank_flow.statements.raised_alone import without_failures
from ranksafe.semantics.rank_flow.traces import Call, Item, matters_to_caller
from ranksafe.semantics.rank_flow.values import NOTHING_KNOWN, Known, Thing, Value
from ranksafe.semantics.units import callee_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from ranksafe.semantics.rank_flow.interpreter import Interpreter

    Judge = Callable[
        [ast.ExceptHandler | ast.Call, list[Item], list[Item], list[list[Item]]], object
    ]

_GIVES_ARGUMENT = frozenset({"contextlib.nullcontext", "contextlib.closing"})


class Contexts:
    """Runs ``with``; says whether the code after it is reached."""

    def __init__(self, interpreter: Interpreter, judge: Judge) -> None:
        self._judge = judge
        self._run = interpreter.run
        self._interpreter = interpreter

    def run(self, node: ast.With | ast.AsyncWith) -> bool:
        """``with``: its items, then its body inside what they mean, then what they do at the end."""
        run = self._run
        inside = run.inside
        before = replace(inside)
        left: list[tuple[ast.AST, Thing | list[Item]]] = []
        caught: list[Handler] = []
        for item in node.items:
            value, after = self._enter(item.context_expr, caught)
            if after is not None:
                left.append((item.context_expr, after))
            if item.optional_vars is not None:
                self._interpreter.assignments.bind(item.optional_vars, value)
        outer, run.items = run.items, []
        inside.trying += bool(caught)
        reached = self._interpreter.statements.block(node.body)
        inside.trying -= bool(caught)
        body, run.items = run.items, outer
        for handler in caught:
            self._judge(handler.node, handler.inside, body, [handler.later])
        outer.extend(body if inside.trying else without_failures(body))
        if reached:
            for place, after in reversed(left):
                self._leave(place, after)
        inside.no_sync, inside.joined, inside.no_grad = (
            before.no_sync,
            before.joined,
            before.no_grad,
        )
        return reached

    def _enter(
        self, node: ast.expr, caught: list[Handler]
    ) -> tuple[Value, Thing | list[Item] | None]:
        """The value of a ``with`` item, and what happens at the end; notes what it means for the collectives inside.

        `caught` gets the handlers for what the body raises, innermost first.
        """
        inside = self._run.inside
        if isinstance(node, ast.Call):
            word = callee_name(node) or ""
            name = self._run.module.qualified_name(node.func) or ""
            if word == "no_sync":
                inside.no_sync += 1
            elif word in ("join", "join_uneven_inputs", "Join") or name.endswith(".Join"):
                inside.joined += 1
            elif name in ("torch.no_grad", "torch.inference_mode"):
                inside.no_grad += 1
            elif name == "contextlib.suppress" and node.args:
                caught.insert(0, Handler(node, [], []))
            if name in _GIVES_ARGUMENT and len(node.args) == 1:
                return self._interpreter.expressions.value(node.args[0]), None
            split = self._of_generator(node, caught)
            if split is not None:
                return split
        value = self._interpreter.expressions.value(node)
        if isinstance(value, Thing) and value.kind == "object":
            for name in ("__enter__", "__aenter__"):
                entered = self._interpreter.objects.special(value, name, node)
                if entered is not None:
                    return entered, value
        return value, None

    def _leave(self, place: ast.AST, after: Thing | list[Item]) -> None:
        if isinstance(after, Thing):
            nothing = (Known(None), Known(None), Known(None))
            for name in ("__exit__", "__aexit__"):
                if self._interpreter.objects.special(after, name, place, *nothing) is not None:
                    return
        elif matters_to_caller(after):
            self._run.items.append(Call(self._run.place(place), after))

    def _of_generator(
        self, node: ast.Call, caught: list[Handler]
    ) -> tuple[Value, list[Item]] | None:
        """``with section():`` of a generator that yields once: what is before the yield, and what comes after it."""
        run, interpreter = self._run, self._interpreter
        receiver: Value | None = None
        if isinstance(node.func, ast.Attribute):
            name = run.module.qualified_name(node.func)
            if name is None or name.startswith("builtins."):
                receiver = interpreter.expressions.look(node.func.value)
        function = interpreter.callables.of_call(node, receiver)
        if function is None or function.kind != "function" or not is_context(function.node):
            return None
        body, functions = function.node, interpreter.functions
        if not functions.worth_following(function) and not functions.is_small(function):
            return None
        if len(run.frame.calls) >= MAXIMUM_DEPTH or body in interpreter.running:
            return None
        owner = receiver if isinstance(receiver, Thing) and receiver.kind == "object" else None
        if isinstance(function.detail, Thing):
            owner = function.detail
        assert body is not None
        outer, run.items = run.items, []
        frame = interpreter.frame_for(function, owner, node, None)
        frame.generates = True
        interpreter.run_frame(frame, body)
        items, run.items = run.items, outer
        caught[:0] = frame.catches
        before, value, after = _halves(items)
        if matters_to_caller(before):
            run.items.append(Call(run.place(node), before))
        return value, after


def _halves(items: list[Item]) -> tuple[list[Item], Value, list[Item]]:
    """What a context does before its ``yield``, what it yields, and what it does afterwards."""
    handed_out = list(yields_in(items))
    if len(handed_out) != 1:
        return without_yields(items), NOTHING_KNOWN, []
    value = handed_out[0].value
    for index, item in enumerate(items):
        if item is handed_out[0]:
            return items[:index], value, items[index + 1 :]
    return without_yields(items), value, []
