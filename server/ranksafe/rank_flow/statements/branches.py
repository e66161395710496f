"""Branches: a rank takes one arm where it can tell which, and looks at both where it cannot."""

from __future__ import annotations

import ast
from typing import Any

from ranksafe.rank_flow.run import Around, Run
from ranksafe.rank_flow.statements.paths import joined_states, returns_in
from ranksafe.rank_flow.statements.untaken import assigned_in, miss
from ranksafe.rank_flow.traces import Branch, Decision, Passed, matters
from ranksafe.rank_flow.values import (
    Abstract,
    Constant,
    Share,
    Value,
    Varies,
    combined,
    origin_of,
    truth_of,
)
from ranksafe.semantics.facts import is_main_guard


def if_statement(run: Run, node: ast.If) -> bool:
    """``if``: the arm that this rank takes, or both."""
    if is_main_guard(node.test):
        return run.block(node.body)
    test = run.value(node.test)
    truth = truth_of(test)
    if truth is not None:
        return _decided(run, node, test, truth)
    if isinstance(test, Abstract) and test.varies is Varies.BY_DATA and not test.decides:
        # ``if batch:`` asks whether there is one, which says nothing of what is in it.
        test = test.changed(varies=Varies.PERHAPS)
    return _undecided(run, node, test, [node.body, node.orelse])


def _decided(run: Run, node: ast.If, test: Value, truth: bool) -> bool:
    taken, skipped = (node.body, node.orelse) if truth else (node.orelse, node.body)
    if test.varies.certain:
        run.items.append(Decision(run.place(node), truth, test))
        reached = run.block(taken)
        if reached:
            miss(run, skipped, node)
            _mark_shares(run, taken, skipped)
        return reached
    return run.block(taken)


def _mark_shares(run: Run, taken: list[ast.stmt], skipped: list[ast.stmt]) -> None:
    """A bound that one rank computes otherwise than the others cuts the data unevenly."""
    variables = run.frame.variables
    for name in assigned_in(taken) | assigned_in(skipped):
        value = variables.get(name)
        if isinstance(value, Abstract) and not value.decides and value.varies < Varies.BY_DATA:
            variables[name] = value.changed(share=Share.UNEVEN)


def _undecided(run: Run, node: ast.AST, test: Value, arms: list[list[ast.stmt]]) -> bool:
    """Run both arms and keep what they have in common."""
    outer = run.items
    start = run.snapshot()
    condition = run.frame.condition
    even = test.varies if test.varies.certain else Varies.NO
    ends: list[tuple[Any, list[Any], bool]] = []
    for index, arm in enumerate(arms):
        run.restore(start)
        run.items = []
        run.frame.condition = _stronger(condition, test)
        run.inside.uncertain += not test.varies.certain
        _narrow(run, node, index == 0)
        run.around.append(Around(node, even, origin_of(test)))
        reached = run.block(arm)
        run.around.pop()
        run.inside.uncertain -= not test.varies.certain
        ends.append((run.snapshot(), run.items, reached))
    run.items = outer
    run.frame.condition = condition
    (then, then_items, then_reached), (other, other_items, other_reached) = ends
    if matters(then_items) or matters(other_items):
        outer.append(Branch(run.place(node), test, then_items, other_items))
    else:
        outer.append(Passed(run.place(node)))
    if then_reached and other_reached:
        run.restore(joined_states(then, other, test))
    elif then_reached or other_reached:
        run.restore(then if then_reached else other)
        if returns_in(then_items) or returns_in(other_items):
            run.frame.condition = _stronger(condition, test)
    return then_reached or other_reached


def _narrow(run: Run, node: ast.AST, taken: bool) -> None:
    """``if x is None`` says what x is in its arm."""
    test = node.test if isinstance(node, ast.If) else None
    if (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value is None
    ):
        is_none = isinstance(test.ops[0], ast.Is)
        if isinstance(test.ops[0], (ast.Is, ast.IsNot)) and is_none is taken:
            run.frame.variables[test.left.id] = Constant(None)


def match_statement(run: Run, node: ast.Match) -> bool:
    """``match``: each case may be taken or not."""
    subject = run.value(node.subject)
    reached = True
    for case in node.cases:
        reached = _undecided(run, node, combined(subject), [case.body, []]) and reached
    return reached


def _stronger(before: Value | None, test: Value) -> Value:
    if before is None or test.varies > before.varies:
        return test
    return before
