"""Which units of an edited file are new, and which are old ones that only moved."""

from __future__ import annotations

import ast
from collections import defaultdict, deque

from ranksafe.semantics.units import ClassUnit, Unit
from ranksafe.source.recovery import parse


class Merge:
    """Takes over old units for new ones with the same text."""

    def __init__(self, old: list[Unit]) -> None:
        self._old: dict[tuple[bool, str], deque[Unit]] = defaultdict(deque)
        for unit in old:
            self._old[isinstance(unit, ClassUnit), unit.text].append(unit)
        self.added: list[Unit] = []
        self.removed: list[Unit] = []
        self.added_members: list[Unit] = []
        self.replaced_members: list[Unit] = []

    def merged(self, new: list[Unit]) -> list[Unit]:
        """The file's units: old ones where the text is the same."""
        units = [self._take(unit) for unit in new]
        self.removed = [unit for queue in self._old.values() for unit in queue]
        return units

    def _take(self, new: Unit) -> Unit:
        queue = self._old.get((isinstance(new, ClassUnit), new.text))
        if not queue:
            self.added.append(new)
            return new
        old = queue.popleft()
        old.start, old.end = new.start, new.end
        if isinstance(old, ClassUnit) and isinstance(new, ClassUnit):
            self._merge_members(old, new)
        return old

    def _merge_members(self, old: ClassUnit, new: ClassUnit) -> None:
        available: dict[str, deque[Unit]] = defaultdict(deque)
        for member in old.members:
            available[member.text].append(member)
        members = []
        for member in new.members:
            queue = available.get(member.text)
            if queue:
                kept = queue.popleft()
                kept.start, kept.end = member.start, member.end
                members.append(kept)
            else:
                member.owner = old
                self.added_members.append(member)
                members.append(member)
        self.replaced_members += [unit for queue in available.values() for unit in queue]
        old.members = members
        old.header_end = new.header_end
        old.node.body = [node for member in members for node in member.nodes]


def parse_unit(text: str, unit: Unit) -> list[ast.stmt] | None:
    """The statements of a unit's text with their line numbers in the file; None when it is not intact alone."""
    nested = unit.owner is not None
    # Empty lines in front give every node its line in the file, ten times cheaper than ast.increment_lineno.
    above = "\n" * (unit.start - 1) + "if 1:\n" if nested else "\n" * unit.start
    tree = parse(above + text)
    if tree is None or not tree.body:
        return None
    nodes = tree.body
    if nested:
        if len(nodes) != 1 or not isinstance(nodes[0], ast.If) or nodes[0].orelse:
            return None
        nodes = nodes[0].body
    if any(node.col_offset != unit.indent for node in nodes[:1]):
        return None
    if len(nodes) != len(unit.nodes):
        return None
    return nodes


def same_definition(old: Unit, new: Unit) -> bool:
    """Whether both are one function of the same name: who only names it need not be checked again."""
    first, second = old.nodes[0], new.nodes[0]
    return (
        old.owner is None
        and old.is_definition
        and new.is_definition
        and isinstance(first, (ast.FunctionDef, ast.AsyncFunctionDef))
        and first.__class__ is second.__class__
        and first.name == second.name
    )
