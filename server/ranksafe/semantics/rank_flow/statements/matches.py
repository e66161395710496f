"""``match``: the case that a rank takes where it can tell which, else each as if it were taken or not."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.traces import Decision
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    Known,
    Many,
    Value,
    combined,
    origin_of,
    truth_of,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

Undecided = Callable[[ast.AST, Value, list[list[ast.stmt]]], bool]


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a pattern fits; None: not known, then for the reason that `value` has."""

    certain: bool | None
    value: Value


class Matches:
    """Runs ``match``; says whether the code after it is reached."""

    def __init__(self, interpreter: Interpreter, undecided: Undecided) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter
        self._undecided = undecided

    def run(self, node: ast.Match) -> bool:
        """``match subject: ...``"""
        return self._cases(node, node.cases, self._interpreter.expressions.value(node.subject))

    def _cases(self, node: ast.Match, cases: list[ast.match_case], subject: Value) -> bool:
        place = self._run.place(node)
        differs: Value | None = None
        for index, case in enumerate(cases):
            fit = self._fit(case.pattern, subject)
            if fit.certain is not False and case.guard is not None:
                test = self._interpreter.expressions.value(case.guard)
                guarded = truth_of(test)
                both = None if fit.certain is None and guarded else guarded
                fit = Fit(both, test if fit.certain else combined(fit.value, test))
            if fit.certain is None:
                return self._open(node, cases[index:], subject, fit)
            if differs is None and fit.value.sameness.varies:
                differs = fit.value
            if fit.certain:
                if differs is not None:
                    self._run.items.append(Decision(place, len(cases) - index, differs))
                return self._interpreter.statements.block(case.body)
        if differs is not None:
            self._run.items.append(Decision(place, 0, differs))
        return True

    def _open(self, node: ast.Match, cases: list[ast.match_case], subject: Value, fit: Fit) -> bool:
        """Each case that may be taken, the rest looked at where it is not."""
        reached = self._undecided(node, fit.value, [cases[0].body, []])
        for case in cases[1:]:
            later = self._fit(case.pattern, subject)
            if later.certain is False:
                continue
            test = combined(subject) if later.certain else later.value
            if case.guard is not None:
                test = combined(test, self._interpreter.expressions.value(case.guard))
            reached = self._undecided(node, test, [case.body, []]) and reached
        return reached

    def _fit(self, pattern: ast.pattern, subject: Value) -> Fit:
        if isinstance(pattern, ast.MatchValue):
            return self._equal(subject, self._interpreter.expressions.value(pattern.value))
        if isinstance(pattern, ast.MatchSingleton):
            return self._equal(subject, Known(pattern.value))
        if isinstance(pattern, ast.MatchAs):
            fit = (
                Fit(True, Known(True))
                if pattern.pattern is None
                else self._fit(pattern.pattern, subject)
            )
            if pattern.name is not None and fit.certain is not False:
                self._interpreter.assignments.bind(ast.Name(pattern.name, ast.Store()), subject)
            return fit
        if isinstance(pattern, ast.MatchOr):
            return _either([self._fit(item, subject) for item in pattern.patterns])
        if isinstance(pattern, ast.MatchSequence):
            return self._sequence(pattern, subject)
        for item in ast.walk(pattern):
            name = getattr(item, "name", None) or getattr(item, "rest", None)
            if isinstance(name, str):
                self._interpreter.assignments.bind(
                    ast.Name(name, ast.Store()), combined(subject) if subject.sameness.varies else NOTHING_KNOWN
                )  # fmt: skip
        return Fit(None, combined(subject))

    def _sequence(self, pattern: ast.MatchSequence, subject: Value) -> Fit:
        starred = any(isinstance(item, ast.MatchStar) for item in pattern.patterns)
        if not isinstance(subject, Many) or starred:
            for item in pattern.patterns:
                self._fit(item, combined(subject))
            return Fit(None, combined(subject))
        if len(subject.items) != len(pattern.patterns):
            return Fit(False, Known(False, subject.origin))
        fits = [
            self._fit(item, value)
            for item, value in zip(pattern.patterns, subject.items, strict=True)
        ]
        return _all(fits)

    def _equal(self, subject: Value, value: Value) -> Fit:
        if isinstance(subject, Known) and isinstance(value, Known):
            fits = bool(subject.constant == value.constant)
            return Fit(fits, Known(fits, origin_of(subject, value)))
        return Fit(None, combined(subject, value))


def _all(fits: list[Fit]) -> Fit:
    if any(fit.certain is False for fit in fits):
        return next(fit for fit in fits if fit.certain is False)
    values = combined(*(fit.value for fit in fits))
    if any(fit.certain is None for fit in fits):
        return Fit(None, values)
    return Fit(True, Known(True, values.origin))


def _either(fits: list[Fit]) -> Fit:
    if any(fit.certain for fit in fits):
        return next(fit for fit in fits if fit.certain)
    values = combined(*(fit.value for fit in fits))
    if any(fit.certain is None for fit in fits):
        return Fit(None, values)
    return Fit(False, Known(False, values.origin))
