"""Roots of collectives in groups: named by their rank of all processes, or within the group."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.expressions.groups import Groups, may_have
from ranksafe.semantics.rank_flow.operations import Operation, Parameter
from ranksafe.semantics.rank_flow.traces import Event
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    Known,
    Many,
    Thing,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter


# torch/distributed/distributed_c10d.py:new_subgroups, new_subgroups_by_enumeration (torch 2.13.0)
_GROUP_SIZE = Parameter("group_size", 0)
_ENUMERATED = Parameter("ranks_per_subgroup_list", 0)
_LARGEST_GROUP = 4


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

    def subgroups(self, node: ast.Call, operation: Operation) -> Many | None:
        """What ``new_subgroups`` and ``new_subgroups_by_enumeration`` return: the group of this rank, and all groups.

        None where the members are not known, and on a rank that is in none (torch 2.13.0, distributed_c10d.py).
        """
        run = self._run
        members = None
        if operation.word == "new_subgroups_by_enumeration":
            members = self._enumerated(node)
        elif operation.word == "new_subgroups":
            members = self._of_one_size(node)
        if not members:
            return None
        run.largest_rank = max(run.largest_rank, *(max(ranks) for ranks in members))
        groups = [Thing("group", node=node, module=run.module, detail=ranks) for ranks in members]
        own = [group for group in groups if run.world.rank in group.detail]
        return Many((own[0], Many(tuple(groups)))) if own else None

    def _enumerated(self, node: ast.Call) -> list[tuple[int, ...]] | None:
        given = _ENUMERATED.of(node)
        lists = None if given is None else self._interpreter.expressions.value(given)
        if not isinstance(lists, Many):
            return None
        found = [_numbers(item) for item in lists.items]
        return None if None in found else [ranks for ranks in found if ranks]

    def _of_one_size(self, node: ast.Call) -> list[tuple[int, ...]] | None:
        given = _GROUP_SIZE.of(node)
        value = None if given is None else self._interpreter.expressions.value(given)
        size = value.constant if isinstance(value, Known) else None
        if not isinstance(size, int) or not 0 < size <= _LARGEST_GROUP or len(node.args) > 1:
            return None
        # One group alone would be all processes.
        self._run.largest_rank = max(self._run.largest_rank, 2 * size - 1)
        world = self._run.world.size
        if world % size or any(item.arg == "group" for item in node.keywords):
            return None
        return [tuple(range(first, first + size)) for first in range(0, world, size)]

    def note_own(self, event: Event, node: ast.Call) -> None:
        """All processes take part, and each of them finds the root in its own data."""
        root = event.root
        if event.group is None and event.group_known and isinstance(root, Unknown):
            if root.sameness.varies:
                self._run.note("own-root", node, value=root, event=event)

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


def _numbers(value: Value) -> tuple[int, ...] | None:
    """The ranks that a list or a range of constants names."""
    if isinstance(value, Known) and isinstance(value.constant, (range, tuple)):
        found = tuple(value.constant)
    elif isinstance(value, Many):
        found = tuple(item.constant if isinstance(item, Known) else None for item in value.items)
    else:
        return None
    return found if found and all(isinstance(item, int) for item in found) else None
