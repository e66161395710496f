"""Which function evaluates which kind of expression; the simple kinds."""

from __future__ import annotations

import ast

from ranksafe.rank_flow.calls import call
from ranksafe.rank_flow.expressions.containers import comprehension, dictionary, display, subscript
from ranksafe.rank_flow.expressions.names import attribute, name
from ranksafe.rank_flow.expressions.operators import (
    binary,
    bool_operation,
    compare,
    conditional,
    unary,
)
from ranksafe.rank_flow.generators.generators import iterated
from ranksafe.rank_flow.library_calls.iteration import element
from ranksafe.rank_flow.run import Evaluators, Run
from ranksafe.rank_flow.traces import Yield
from ranksafe.rank_flow.values import NOTHING_KNOWN, SAME, Constant, Object, Value, is_small

_PLAIN = (bool, int, float, str, type(None), tuple)


def _constant(_run: Run, node: ast.Constant) -> Value:
    value = node.value
    return Constant(value) if isinstance(value, _PLAIN) and is_small(value) else SAME


def _inner(run: Run, node: ast.Starred | ast.Await) -> Value:
    return run.value(node.value)


def _named(run: Run, node: ast.NamedExpr) -> Value:
    value = run.value(node.value)
    run.frame.variables[node.target.id] = value
    return value


def _lambda(run: Run, node: ast.Lambda) -> Value:
    return Object("function", node=node, module=run.module, detail=run.frame)


def _yield(run: Run, node: ast.Yield) -> Value:
    value = Constant(None) if node.value is None else run.value(node.value)
    if run.frame.generates:
        run.items.append(Yield(run.place(node), value))
    return NOTHING_KNOWN


def _yield_from(run: Run, node: ast.YieldFrom) -> Value:
    source = iterated(run, run.value(node.value), node.value)
    if run.frame.generates:
        run.items.append(Yield(run.place(node), element(source), source))
    return NOTHING_KNOWN


EXPRESSIONS: Evaluators = {
    ast.Constant: _constant,
    ast.Name: name,
    ast.Attribute: attribute,
    ast.Subscript: subscript,
    ast.Call: call,
    ast.BoolOp: bool_operation,
    ast.BinOp: binary,
    ast.UnaryOp: unary,
    ast.Compare: compare,
    ast.IfExp: conditional,
    ast.Tuple: display,
    ast.List: display,
    ast.Set: display,
    ast.Dict: dictionary,
    ast.ListComp: comprehension,
    ast.GeneratorExp: comprehension,
    ast.SetComp: comprehension,
    ast.NamedExpr: _named,
    ast.Lambda: _lambda,
    ast.Starred: _inner,
    ast.Await: _inner,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
}
