"""Loops that ranks leave together, however much data each of them has."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.rank_flow.traces import Branch, Exit, Item, Loop
from ranksafe.rank_flow.values import Varies, is_agreed

_LOCAL = ("torch.", "builtins.", "math.", "numpy.", "time.", "os.", "random.")


def ends_together(loop: Loop) -> bool:
    """Whether a loop is left when the ranks have agreed to: by the result of a collective, by a limit, or by what a
    function says that is not known here."""
    return any(
        is_agreed(branch.condition)
        or (not branch.condition.varies.certain and _asks(branch))
        or (isinstance(loop.count, Varies) and _is_limit(branch))
        for branch in _leaving(loop.body)
    )


def _leaving(items: list[Item]) -> Iterator[Branch]:
    """Branches that lead out of the loop with this body."""
    for item in items:
        if isinstance(item, Branch):
            if any(
                isinstance(inner, Exit) and inner.kind in ("break", "return")
                for inner in (*item.then, *item.otherwise)
            ):
                yield item
            yield from _leaving([*item.then, *item.otherwise])


def _is_limit(branch: Branch) -> bool:
    """Whether a condition is ``step >= 100``: as many steps as every rank has, most likely."""
    test = getattr(branch.place.node, "test", None)
    return (
        branch.condition.varies is Varies.NO
        and isinstance(test, ast.Compare)
        and isinstance(test.ops[0], (ast.Gt, ast.GtE, ast.Lt, ast.LtE, ast.Eq))
    )


def _asks(branch: Branch) -> bool:
    """Whether a condition calls something that may perform collectives without being seen to."""
    test = getattr(branch.place.node, "test", None)
    if not isinstance(test, ast.expr):
        return False
    for call in ast.walk(test):
        if isinstance(call, ast.Call):
            name = branch.place.module.qualified_name(call.func)
            if name is None or not name.startswith(_LOCAL):
                return True
    return False
