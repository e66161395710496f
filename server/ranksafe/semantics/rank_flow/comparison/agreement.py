"""Conditions that are alike on all ranks, and loops that ranks leave together, however much data each has."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.semantics.rank_flow.traces import Branch, Exit, Item, Loop
from ranksafe.semantics.rank_flow.values import Sameness, is_agreed

_LOCAL = ("torch.", "builtins.", "math.", "numpy.", "time.", "os.", "random.")


def ends_together(loop: Loop) -> bool:
    """Whether a loop is left when the ranks have agreed to: by the result of a collective, by a limit, or by what a
    function says that is not known here."""
    return any(
        is_agreed(branch.condition)
        or (not branch.condition.sameness.varies and _asks(branch))
        or (isinstance(loop.count, Sameness) and _is_limit(branch))
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
    """Whether a condition is ``step >= 100``: as many steps as every rank has, most likely.

    Limits that are not known may be larger than that.
    """
    test = getattr(branch.place.node, "test", None)
    known = branch.condition.sameness is Sameness.SAME
    return (
        known
        and isinstance(test, ast.expr)
        and any(
            isinstance(operator, (ast.Gt, ast.GtE, ast.Lt, ast.LtE, ast.Eq))
            for part in ast.walk(test)
            if isinstance(part, ast.Compare)
            for operator in part.ops
        )
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


def alike(one: Branch | Loop, other: Branch | Loop) -> bool:
    """Whether two conditions are written the same and mean the same on all ranks."""
    if isinstance(one, Branch) and isinstance(other, Branch):
        nodes = [getattr(item.place.node, "test", item.place.node) for item in (one, other)]
        uniform = not one.condition.sameness.varies and not other.condition.sameness.varies
    else:
        nodes = [
            getattr(item.place.node, "iter", getattr(item.place.node, "test", item.place.node))
            for item in (one, other)
        ]
        uniform = True
    return uniform and ast.dump(nodes[0]) == ast.dump(nodes[1])
