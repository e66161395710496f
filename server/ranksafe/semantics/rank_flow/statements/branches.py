"""Branches: a rank takes one arm where it can tell which, and looks at both where it cannot."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ranksafe.semantics.facts import is_main_guard
from ranksafe.semantics.rank_flow.run import Around
from ranksafe.semantics.rank_flow.statements.matches import Matches
from ranksafe.semantics.rank_flow.statements.one_sided import OneSided, in_arm, rest_of_function
from ranksafe.semantics.rank_flow.statements.paths import joined_states, returns_in
from ranksafe.semantics.rank_flow.statements.untaken import UntakenArm, assigned_in
from ranksafe.semantics.rank_flow.traces import Branch, Decision, Passed, matters
from ranksafe.semantics.rank_flow.values import (
    Known,
    Sameness,
    Share,
    Unknown,
    Value,
    origin_of,
    truth_of,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter


class Branches:
    """Runs ``if`` and ``match``; says whether the code after them is reached."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter
        self._untaken = UntakenArm(interpreter)
        self._one_sided = OneSided(interpreter)
        self.run_match = Matches(interpreter, self._undecided).run

    def run(self, node: ast.If) -> bool:
        """``if``: the arm that this rank takes, or both."""
        if is_main_guard(node.test):
            return self._interpreter.statements.block(node.body)
        test = self._interpreter.expressions.value(node.test)
        own = self._interpreter.objects.special(test, "__bool__", node.test)
        test = test if own is None else own
        if isinstance(test, Unknown) and test.there is not None and not test.decides:
            test = Known(True, test.there)
        truth = truth_of(test)
        if truth is not None:
            return self._decided(node, test, truth)
        if isinstance(test, Unknown) and test.length is Sameness.DATA and not test.decides:
            # ``if episodes:`` of a list that is as long as the rank's data makes it.
            test = replace(test, sameness=Sameness.DATA, decides=True)
        if isinstance(test, Unknown) and test.sameness is Sameness.DATA and not test.decides:
            # ``if batch:`` asks whether there is one, which says nothing of what is in it.
            test = replace(test, sameness=Sameness.UNKNOWN)
        apart = self._run.apart.pop(id(node.test), None)
        if apart is None:
            return self._undecided(node, test, [node.body, node.orelse])
        before = self._run.snapshot()
        reached = self._undecided(node, test, [node.body, node.orelse])
        self._one_sided.mark_told(before, apart)
        return reached

    def _decided(self, node: ast.If, test: Value, truth: bool) -> bool:
        run = self._run
        taken, skipped = (node.body, node.orelse) if truth else (node.orelse, node.body)
        if test.sameness.varies:
            run.items.append(Decision(run.place(node), truth, test))
            before, alone = run.snapshot(), len(run.alone)
            decided, run.frame.decided = run.frame.decided, origin_of(test)
            run.alone.extend([origin for origin in [run.frame.decided] if origin is not None])
            reached = self._interpreter.statements.block(taken)
            del run.alone[alone:]
            if decided is not None or not _may_return(skipped):
                run.frame.decided = decided
            if skipped and _returns_none(skipped[-1]):
                run.frame.none_elsewhere = origin_of(test)
            if reached:
                self._one_sided.mark_taken(before, test)
                self._one_sided.mark_skipped(skipped, test)
                self._untaken.miss(skipped, node, test)
                self._mark_shares(taken, skipped)
            elif taken and isinstance(taken[-1], ast.Return):
                self._one_sided.mark_skipped(rest_of_function(run.module, node), test)
            return reached
        return self._interpreter.statements.block(taken)

    def _mark_shares(self, taken: list[ast.stmt], skipped: list[ast.stmt]) -> None:
        """A bound that one rank computes otherwise than the others cuts the data unevenly."""
        variables = self._run.frame.variables
        for name in assigned_in(taken) | assigned_in(skipped):
            value = variables.get(name)
            if isinstance(value, Unknown) and not value.decides and value.sameness < Sameness.DATA:
                variables[name] = replace(value, share=Share.UNEVEN)

    def _undecided(self, node: ast.AST, test: Value, arms: list[list[ast.stmt]]) -> bool:
        """Run both arms and keep what they have in common."""
        run = self._run
        outer = run.items
        start = run.snapshot()
        condition = run.frame.condition
        ends: list[tuple[Any, list[Any], bool]] = []
        for index, arm in enumerate(arms):
            run.restore(start)
            run.items = []
            run.frame.condition = _stronger(condition, test)
            run.inside.uncertain += not test.sameness.varies
            self._narrow(node, index == 0)
            run.around.append(Around(node, _apart(test), origin_of(test)))
            reached = self._interpreter.statements.block(arm)
            run.around.pop()
            run.inside.uncertain -= not test.sameness.varies
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

    def _narrow(self, node: ast.AST, taken: bool) -> None:
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
                self._run.frame.variables[test.left.id] = Known(None)


def _returns_none(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Return) and (
        statement.value is None
        or (isinstance(statement.value, ast.Constant) and statement.value.value is None)
    )


def _may_return(arm: list[ast.stmt]) -> bool:
    """Whether the ranks that take an arm may return from it."""
    return any(isinstance(item, ast.Return) for item in in_arm(arm))


def _apart(test: Value) -> Sameness:
    """Whether ranks come to an arm equally often."""
    return test.sameness if test.sameness.varies else Sameness.SAME


def _stronger(before: Value | None, test: Value) -> Value:
    if before is None or test.sameness > before.sameness:
        return test
    return before
