"""Finds what runs a statement; runs expressions, definitions and what leaves a function or loop."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ranksafe.semantics.rank_flow.library_calls.growing_dictionaries import may_be_filled_up
from ranksafe.semantics.rank_flow.statements.branches import Branches
from ranksafe.semantics.rank_flow.statements.contexts import Contexts
from ranksafe.semantics.rank_flow.statements.exceptions import Exceptions
from ranksafe.semantics.rank_flow.statements.loops import Loops
from ranksafe.semantics.rank_flow.statements.raised_alone import names_of_raised
from ranksafe.semantics.rank_flow.traces import Exit
from ranksafe.semantics.rank_flow.trainer_control import stepped
from ranksafe.semantics.rank_flow.values import (
    Known,
    OfFile,
    Sameness,
    Thing,
    Unknown,
    Value,
    combined,
    of_file,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter


class Statements:
    """Runs statements; says whether the code after them is reached."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter
        assignments = interpreter.assignments
        branches = Branches(interpreter)
        loops = Loops(interpreter)
        exceptions = Exceptions(interpreter)
        contexts = Contexts(interpreter, exceptions.judge_raised)
        self._of: dict[type[ast.AST], Callable[[Any], bool]] = {
            ast.Expr: self._expression,
            ast.Assign: assignments.assign,
            ast.AnnAssign: assignments.annotated,
            ast.AugAssign: assignments.augmented,
            ast.If: branches.run,
            ast.For: loops.run_for,
            ast.AsyncFor: loops.run_for,
            ast.While: loops.run_while,
            ast.Try: exceptions.run,
            ast.With: contexts.run,
            ast.AsyncWith: contexts.run,
            ast.Return: self._return,
            ast.Raise: self._raise,
            ast.Break: lambda node: self._leave("break", node),
            ast.Continue: lambda node: self._leave("continue", node),
            ast.FunctionDef: self._define,
            ast.AsyncFunctionDef: self._define,
            ast.Assert: self._assert,
            ast.Match: branches.run_match,
        }
        if hasattr(ast, "TryStar"):
            self._of[ast.TryStar] = exceptions.run

    def block(self, statements: list[ast.stmt]) -> bool:
        """Run statements in order; whether the end is reached."""
        return all(self.statement(statement) for statement in statements)

    def statement(self, node: ast.stmt) -> bool:
        """Run one statement."""
        self._run.step()
        execute = self._of.get(node.__class__)
        return True if execute is None else execute(node)

    def _expression(self, node: ast.Expr) -> bool:
        self._interpreter.expressions.value(node.value)
        if isinstance(node.value, ast.Call) and self._interpreter.calls.leaves_process(node.value):
            return self._leave("exit", node)
        if isinstance(node.value, ast.Call):
            may_be_filled_up(self._run, node.value)
        return True

    def _leave(self, kind: Any, node: ast.AST) -> bool:
        if kind in ("break", "continue"):
            self._run.frame.left.append((kind, self._run.snapshot()))
        self._run.items.append(Exit(kind, self._run.place(node)))
        return False

    def _return(self, node: ast.Return) -> bool:
        value = (
            Known(None) if node.value is None else self._interpreter.expressions.value(node.value)
        )
        if isinstance(value, Known) and value.constant is None and value.instead_of is None:
            value = Known(None, value.origin, instead_of=self._run.frame.value_elsewhere)
        if isinstance(value, Known) and value.origin is None:
            value = replace(value, origin=self._run.frame.decided)
        stepped(self._interpreter, node, value)
        condition = self._run.frame.condition
        if condition is not None and condition.sameness > value.sameness:
            # Which value is returned was decided; whether a value that is none of true and false is empty was not.
            own = isinstance(value, Unknown) and value.decides
            decides = own or isinstance(value, Known)
            asked = None if of_file(value, condition) is None else OfFile.EITHER
            value = replace(
                combined(value, condition),
                decides=decides,
                file=asked,
                none_apart=_is_none_apart(value, condition),
                **_dictionary_of(value),
            )
        self._run.frame.returns.append(value)
        return self._leave("return", node)

    def _raise(self, node: ast.Raise) -> bool:
        run = self._run
        names = names_of_raised(run.functions, run.module, node.exc)
        run.items.append(Exit("raise", run.place(node), names))
        return False

    def _assert(self, node: ast.Assert) -> bool:
        self._interpreter.expressions.value(node.test)
        return True

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        run = self._run
        run.frame.variables[node.name] = Thing(
            "function", node=node, module=run.module, detail=run.frame
        )
        return True


def _is_none_apart(value: Value, condition: Value) -> bool:
    """Whether the data of the rank decides that None is returned."""
    decided = isinstance(condition, Unknown) and condition.decides
    nothing = isinstance(value, Known) and value.constant is None and value.origin is None
    return nothing and decided and condition.sameness is Sameness.DATA


def _dictionary_of(value: Value) -> dict[str, Any]:
    """What a dictionary of known keys keeps where only some ranks may return it."""
    if not isinstance(value, Unknown) or value.entries is None:
        return {}
    return {"entries": value.entries, "length": value.length, "steps": value.steps}
