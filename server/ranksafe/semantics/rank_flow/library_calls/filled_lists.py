"""Lists that a loop of known length fills, one item in each step: how long they are afterwards is known, too."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.values import Unknown, length_of

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.run import Frame

_SKIPS = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Try)


def lengths_after(frame: Frame, node: ast.For, steps: int) -> dict[str, int]:
    """How long the lists will be after ``steps`` steps that each step adds an item to, and does nothing else with."""
    names = [name for item in node.body if (name := appended_to(item)) is not None]
    if not names or any(isinstance(item, _SKIPS) for part in node.body for item in ast.walk(part)):
        return {}
    mentioned = [
        item.id for part in node.body for item in ast.walk(part) if isinstance(item, ast.Name)
    ]
    found = {}
    for name in names:
        held = frame.variables.get(name)
        length = None if held is None else length_of(held)
        if mentioned.count(name) == 1 and isinstance(length, int):
            found[name] = length + steps
    return found


def lengthen(frame: Frame, lengths: Mapping[str, int]) -> None:
    """Note them once the loop has run."""
    for name, length in lengths.items():
        held = frame.variables.get(name)
        if isinstance(held, Unknown):
            frame.variables[name] = replace(held, steps=length)


def appended_to(statement: ast.stmt) -> str | None:
    """The name in ``name.append(item)``."""
    match statement:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[_], keywords=[]
            )
        ):
            return name
    return None
