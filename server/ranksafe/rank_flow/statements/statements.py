"""Which function runs which kind of statement; expressions, assignments, definitions and ways out."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import partial

from ranksafe.rank_flow.binding import bind
from ranksafe.rank_flow.calls import process_exit
from ranksafe.rank_flow.expressions.operators import computed
from ranksafe.rank_flow.expressions.slices import pads
from ranksafe.rank_flow.library_objects import library_annotated
from ranksafe.rank_flow.run import Executors, Run
from ranksafe.rank_flow.statements.branches import if_statement, match_statement
from ranksafe.rank_flow.statements.exceptions import try_statement
from ranksafe.rank_flow.statements.loops import for_statement, while_statement
from ranksafe.rank_flow.syntax import turns_gradients_off
from ranksafe.rank_flow.traces import Exit, ExitKind
from ranksafe.rank_flow.values import (
    NOTHING_KNOWN,
    Abstract,
    Constant,
    Object,
    Sequence,
    Share,
    Value,
    combined,
    listed,
)
from ranksafe.semantics.units import callee_name


def _expression(run: Run, node: ast.Expr) -> bool:
    run.value(node.value)
    kind = process_exit(run, node.value) if isinstance(node.value, ast.Call) else None
    return True if kind is None else _leave(kind, run, node)


def _leave(kind: ExitKind, run: Run, node: ast.AST) -> bool:
    if kind in ("break", "continue"):
        run.frame.left.append((kind, run.snapshot()))
    run.items.append(Exit(kind, run.place(node)))
    return False


def _return(run: Run, node: ast.Return) -> bool:
    value = Constant(None) if node.value is None else run.value(node.value)
    if isinstance(value, Constant) and value.constant is None and value.instead_of is None:
        value = Constant(None, value.origin, instead_of=run.frame.value_elsewhere)
    condition = run.frame.condition
    if condition is not None and condition.varies > value.varies:
        value = combined(value, condition)
    run.frame.returns.append(value)
    return _leave("return", run, node)


def _assert(run: Run, node: ast.Assert) -> bool:
    run.value(node.test)
    return True


def _define(run: Run, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    run.frame.variables[node.name] = Object(
        "function", node=node, module=run.module, detail=run.frame
    )
    return True


def with_statement(run: Run, node: ast.With) -> bool:
    """``with``: its items, then its body inside what they mean."""
    inside, before = run.inside, replace(run.inside)
    for item in node.items:
        value = _enter_context(run, item.context_expr)
        if item.optional_vars is not None:
            bind(run, item.optional_vars, value)
    reached = run.block(node.body)
    inside.no_sync, inside.joined, inside.no_grad = (before.no_sync, before.joined, before.no_grad)
    return reached


def _enter_context(run: Run, node: ast.expr) -> Value:
    """The value of a ``with`` item; notes what it means for the collectives inside."""
    inside = run.inside
    if isinstance(node, ast.Call):
        word = callee_name(node) or ""
        name = run.module.qualified_name(node.func) or ""
        inside.no_grad += turns_gradients_off(run.module, node)
        if word == "no_sync":
            inside.no_sync += 1
        elif word in ("join", "join_uneven_inputs", "Join") or name.endswith(".Join"):
            inside.joined += 1
    return run.value(node)


def assign(run: Run, node: ast.Assign) -> bool:
    """``a = b = x``."""
    value = run.value(node.value)
    for target in node.targets:
        bind(run, target, value)
    return True


def annotated_assignment(run: Run, node: ast.AnnAssign) -> bool:
    """``a: int = x``."""
    if node.value is not None:
        value = run.value(node.value)
        if isinstance(value, Abstract):
            value = library_annotated(run, node) or value
        bind(run, node.target, value)
    return True


def augmented_assignment(run: Run, node: ast.AugAssign) -> bool:
    """``a += x``."""
    target = node.target
    if isinstance(target, ast.Name):
        load: ast.expr = ast.Name(target.id, ast.Load())
        before = run.variable(target.id)
    else:
        load, before = target, None
    if before is None:
        before = run.value(load) if not isinstance(target, ast.Name) else NOTHING_KNOWN
    added = run.value(node.value)
    if isinstance(before, Constant) and isinstance(added, Constant):
        bind(run, target, computed(node.op, before, added))
    elif (
        isinstance(before, Sequence)
        and isinstance(added, Sequence)
        and isinstance(node.op, ast.Add)
    ):
        bind(run, target, listed(before.items + added.items))
    elif isinstance(node.op, ast.Add) and pads(node.value):
        bind(run, target, combined(before, added).changed(share=Share.EVEN))
    else:
        bind(run, target, combined(before, added))
    return True


STATEMENTS: Executors = {
    ast.Expr: _expression,
    ast.Assign: assign,
    ast.AnnAssign: annotated_assignment,
    ast.AugAssign: augmented_assignment,
    ast.If: if_statement,
    ast.For: for_statement,
    ast.AsyncFor: for_statement,
    ast.While: while_statement,
    ast.Try: try_statement,
    **({ast.TryStar: try_statement} if hasattr(ast, "TryStar") else {}),
    ast.With: with_statement,
    ast.AsyncWith: with_statement,
    ast.Return: _return,
    ast.Raise: partial(_leave, "raise"),
    ast.Break: partial(_leave, "break"),
    ast.Continue: partial(_leave, "continue"),
    ast.FunctionDef: _define,
    ast.AsyncFunctionDef: _define,
    ast.Assert: _assert,
    ast.Match: match_statement,
}
