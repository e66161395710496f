"""Contexts: ``with`` statements, some of which say what collectives inside do."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.values import Value
from ranksafe.semantics.units import callee_name

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter


class Contexts:
    """Runs ``with``; says whether the code after it is reached."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def run(self, node: ast.With) -> bool:
        """``with``: its items, then its body inside what they mean."""
        inside = self._run.inside
        before = replace(inside)
        for item in node.items:
            value = self._enter(item.context_expr)
            if item.optional_vars is not None:
                self._interpreter.assignments.bind(item.optional_vars, value)
        reached = self._interpreter.statements.block(node.body)
        inside.no_sync, inside.joined, inside.no_grad = (
            before.no_sync,
            before.joined,
            before.no_grad,
        )
        return reached

    def _enter(self, node: ast.expr) -> Value:
        """The value of a ``with`` item; notes what it means for the collectives inside."""
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
        return self._interpreter.expressions.value(node)
