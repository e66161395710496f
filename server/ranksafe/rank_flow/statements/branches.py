"""Branches: a rank takes one arm where it can tell which, and misses what the other assigns; else it looks at both."""

from __future__ import annotations

import ast
from typing import Any

from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.statements.paths import joined_states, returns_in
from ranksafe.rank_flow.traces import Branch, Decision, Passed, matters
from ranksafe.rank_flow.values import (
    Abstract,
    Constant,
    Object,
    Share,
    Unassigned,
    Value,
    Varies,
    combined,
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
    elsewhere = test.elsewhere if isinstance(test, Abstract) else None
    if elsewhere is not None:
        mine = Constant(not elsewhere.constant, elsewhere.origin)
        run.items.append(Decision(run.place(node), mine.constant, mine))
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
    ends: list[tuple[Any, list[Any], bool]] = []
    for index, arm in enumerate(arms):
        run.restore(start)
        run.items = []
        run.frame.condition = _stronger(condition, test)
        run.inside.uncertain += not test.varies.certain
        _narrow(run, node, index == 0)
        reached = run.block(arm)
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


def miss(run: Run, skipped: list[ast.stmt], branch: ast.If) -> None:
    """What other ranks assign in the arm that this one does not take, or return from it."""
    if _returns_value(skipped):
        run.frame.value_elsewhere = branch
    if not _reaches_end(skipped):
        return
    variables = run.frame.variables
    _miss_attributes(run, skipped, branch)
    for name in assigned_in(skipped):
        before = variables.get(name)
        if before is None:
            if not _bound_before(run, name, branch):
                variables[name] = Unassigned(name, branch)
        elif isinstance(before, Constant) and before.constant is None:
            variables[name] = Constant(None, before.origin, instead_of=branch)


def _miss_attributes(run: Run, skipped: list[ast.stmt], branch: ast.If) -> None:
    """The same for attributes of objects whose class does not give them a value."""
    for statement in skipped:
        if not isinstance(statement, ast.Assign):
            continue
        for target in statement.targets:
            if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
                continue
            holder = run.variable(target.value.id)
            if not isinstance(holder, Object) or holder.kind != "object":
                continue
            cls, module = holder.node, holder.module
            if run.attribute(holder, "__made__") is None or not isinstance(cls, ast.ClassDef):
                continue
            assert module is not None
            known = module.attribute_stores(cls, target.attr)
            named = run.functions.class_attribute(holder, target.attr)
            if run.attribute(holder, target.attr) is None and not known and named is None:
                run.set_attribute(holder, target.attr, Unassigned(target.attr, branch))


def _bound_before(run: Run, name: str, branch: ast.AST) -> bool:
    """Whether the name may have been bound in a way that was not followed: a parameter, an import, a global."""
    scope = run.module.scope_of(branch)
    frame = run.frame
    if frame.outer is not None and run.variable(name) is not None:
        return True
    bindings = (
        run.module.module_bindings(name) if scope.kind == "module" else scope.bindings.get(name, [])
    )
    if name in scope.globals:
        return True
    order = run.module.order_of
    return any(
        not run.module.is_inside(binding, branch)
        and (not isinstance(binding, ast.Name) or order(binding) < order(branch))
        for binding in bindings
    )


def assigned_in(statements: list[ast.stmt]) -> set[str]:
    """Names that a block certainly assigns in its own function: nested branches left out."""
    found: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                found |= {
                    node.id
                    for node in ast.walk(target)
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                }
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            found.add(statement.target.id)
        elif isinstance(statement, ast.With):
            found |= assigned_in(statement.body)
    return found


def _returns_value(statements: list[ast.stmt]) -> bool:
    return any(
        (isinstance(item, ast.Return) and item.value is not None)
        or (isinstance(item, ast.With) and _returns_value(item.body))
        for item in statements
    )


def _reaches_end(statements: list[ast.stmt]) -> bool:
    return bool(statements) and not isinstance(
        statements[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break)
    )
