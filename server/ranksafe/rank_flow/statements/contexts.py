"""Contexts: ``with`` statements, some of which say what collectives inside do."""

from __future__ import annotations

import ast
from dataclasses import replace

from ranksafe.rank_flow.binding import bind
from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.values import Value
from ranksafe.semantics.units import callee_name


def with_statement(run: Run, node: ast.With) -> bool:
    """``with``: its items, then its body inside what they mean."""
    inside = run.inside
    before = replace(inside)
    for item in node.items:
        value = _enter(run, item.context_expr)
        if item.optional_vars is not None:
            bind(run, item.optional_vars, value)
    reached = run.block(node.body)
    inside.no_sync, inside.joined, inside.no_grad = (
        before.no_sync,
        before.joined,
        before.no_grad,
    )
    return reached


def _enter(run: Run, node: ast.expr) -> Value:
    """The value of a ``with`` item; notes what it means for the collectives inside."""
    inside = run.inside
    if isinstance(node, ast.Call):
        word = callee_name(node) or ""
        name = run.module.qualified_name(node.func) or ""
        if word == "no_sync":
            inside.no_sync += 1
        elif word in ("join", "join_uneven_inputs", "Join") or name.endswith(".Join"):
            inside.joined += 1
        elif name in ("torch.no_grad", "torch.inference_mode"):
            inside.no_grad += 1
    return run.value(node)
