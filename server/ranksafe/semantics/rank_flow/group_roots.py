"""Roots of collectives in groups: named by their rank of all processes, or within the group."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.expressions.groups import Groups, may_have
from ranksafe.semantics.rank_flow.operations import Operation
from ranksafe.semantics.rank_flow.traces import Event
from ranksafe.semantics.rank_flow.values import NOTHING_KNOWN, Known, Thing, Unknown, Value

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter


class GroupRoots:
    """Finds the root of a call, and notes roots that are in none of the groups it may be for."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def of_member(self, expression: ast.expr, group: Thing | None) -> Value:
        """The rank of all processes that ``group_src=0`` names."""
        index = self._interpreter.expressions.value(expression)
        members = None if group is None else group.detail
        if isinstance(index, Known) and isinstance(index.constant, int) and members is not None:
            if 0 <= index.constant < len(members):
                return Known(members[index.constant], index.origin)
        return index if group is None and isinstance(index, Known) else NOTHING_KNOWN

    def note_foreign(self, event: Event, node: ast.Call, operation: Operation) -> None:
        """One of several groups, and the root is in none of those of this rank."""
        expression = None if operation.group is None else operation.group.of(node)
        value = None if expression is None else self._interpreter.expressions.look(expression)
        if isinstance(value, Unknown) and value.groups:
            rank = self._run.world.rank
            mine = tuple(item for item in value.groups if may_have((item,), rank))
            if mine and not has_root(event, mine):
                self._run.note("foreign-root", node, event=event)


def has_root(event: Event, groups: Groups) -> bool:
    """Whether the root, a rank of all processes, may be in one of the groups."""
    root = event.root.constant if isinstance(event.root, Known) else None
    return not isinstance(root, int) or may_have(groups, root)


def root_in_group(node: ast.Call) -> ast.expr | None:
    """The root, where it is named by its rank within the group (torch 2.13.0, ``group_src`` and ``group_dst``)."""
    given = (item.value for item in node.keywords if item.arg in ("group_src", "group_dst"))
    return next(given, None)
