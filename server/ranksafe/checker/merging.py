"""Which units of an edited file are new, and which are old ones that only moved."""

from __future__ import annotations

import ast
from collections import defaultdict, deque
from collections.abc import Sequence
from copy import copy

from ranksafe.semantics.units import ClassUnit, Unit, first_line, last_line
from ranksafe.semantics.walking import FUNCTIONS
from ranksafe.source.recovery import parse
from ranksafe.source.text import split_lines


class Merge:
    """Takes over old units for new ones with the same text.

    Units that are taken over keep their order: what a name stands for depends on which assignment comes first, so a
    unit that changed places with another one must be checked again.
    """

    def __init__(self, old: list[Unit]) -> None:
        self._old = old
        self.added: list[Unit] = []
        self.removed: list[Unit] = []
        self.added_members: list[Unit] = []
        self.replaced_members: list[Unit] = []

    def merged(self, new: list[Unit]) -> list[Unit]:
        """The file's units: old ones where the text is the same."""
        units = []
        for old, unit in self._paired(self._old, new, self.removed):
            if old is None:
                self.added.append(unit)
                units.append(unit)
                continue
            old.start, old.end = unit.start, unit.end
            if isinstance(old, ClassUnit) and isinstance(unit, ClassUnit):
                self._merge_members(old, unit)
            units.append(old)
        return units

    def _merge_members(self, old: ClassUnit, new: ClassUnit) -> None:
        members = []
        for kept, member in self._paired(old.members, new.members, self.replaced_members):
            if kept is None:
                member.owner = old
                self.added_members.append(member)
                members.append(member)
            else:
                kept.start, kept.end = member.start, member.end
                members.append(kept)
        old.members = members
        old.header_end = new.header_end
        old.node.body = [node for member in members for node in member.nodes]

    def _paired(
        self, old: Sequence[Unit], new: Sequence[Unit], dropped: list[Unit]
    ) -> list[tuple[Unit | None, Unit]]:
        """Each new unit with the old one it is, or None; old units that are none of these are put into ``dropped``."""
        shorter = min(len(old), len(new))
        front = 0
        while front < shorter and _same(old[front], new[front]):
            front += 1
        back = 0
        while back < shorter - front and _same(old[-1 - back], new[-1 - back]):
            back += 1
        middle = list(old[front : len(old) - back])
        places: dict[tuple[bool, str], deque[int]] = defaultdict(deque)
        for index, unit in enumerate(middle):
            places[_text(unit)].append(index)
        pairs: list[tuple[Unit | None, Unit]] = list(zip(old[:front], new[:front], strict=True))
        position = 0
        for unit in new[front : len(new) - back]:
            left = places.get(_text(unit), deque())
            while left and left[0] < position:
                left.popleft()
            if not left:
                pairs.append((None, unit))
                continue
            found = left.popleft()
            dropped += middle[position:found]
            pairs.append((middle[found], unit))
            position = found + 1
        dropped += middle[position:]
        if back:
            pairs += zip(old[-back:], new[-back:], strict=True)
        return pairs


def _same(old: Unit, new: Unit) -> bool:
    return _text(old) == _text(new)


def _text(unit: Unit) -> tuple[bool, str]:
    return isinstance(unit, ClassUnit), unit.text


def parse_unit(text: str, unit: Unit) -> list[ast.stmt] | None:
    """The statements of a unit's text with their line numbers in the file; None when it is not intact alone."""
    nodes = _parsed_at(unit.start, text, nested=unit.owner is not None)
    if nodes is None or any(node.col_offset != unit.indent for node in nodes[:1]):
        return None
    if len(nodes) != len(unit.nodes):
        return None
    return nodes


def _parsed_at(start: int, text: str, *, nested: bool) -> list[ast.stmt] | None:
    """Statements with the lines they have in the file, of which the first begins on line ``start`` (0-based);
    ``nested``: they are indented. None where they are not intact alone."""
    # Empty lines in front give every node its line in the file, ten times cheaper than ast.increment_lineno.
    above = "\n" * (start - 1) + "if 1:\n" if nested else "\n" * start
    tree = parse(above + text)
    nodes = None if tree is None else tree.body
    if not nodes or not nested:
        return nodes or None
    first = nodes[0]
    if len(nodes) != 1 or not isinstance(first, ast.If) or first.orelse:
        return None
    return first.body


def with_statement_parsed(
    unit: Unit, first: int, last: int, lines: Sequence[str]
) -> list[ast.stmt] | None:
    """The statements of a unit of which the lines ``first`` to ``last`` (0-based, inclusive) were edited and none came
    or went, with just the simple statement there parsed; None where that is not enough. ``lines``: the file's.

    In a function of some hundred lines parsing it all takes longer than everything else together. Nodes around the
    statement are copied, because what is known of a node is kept with it.
    """
    below = unit.parsed_start - unit.start
    return _replaced(unit.nodes, first + below, last + below, _Edited(unit, lines))


class _Edited:
    """Parses the statement that was edited."""

    def __init__(self, unit: Unit, lines: Sequence[str]) -> None:
        self._unit = unit
        self._lines = lines

    def parsed(self, old: ast.stmt) -> ast.stmt | None:
        """The statement as it is now, at the same place; None where it is not one simple statement alone on its lines
        any more."""
        start, end = first_line(old), last_line(old)
        shift, column = self._unit.shift, old.col_offset
        written = self._lines[start + shift : end + shift + 1]
        before = split_lines(self._unit.text)[start - self._unit.parsed_start]
        indent = before[:column]
        if indent.strip() or written[0][:column] != indent or written[-1].rstrip().endswith("\\"):
            return None
        nodes = _parsed_at(start, "".join(written), nested=column > 0)
        if nodes is None or len(nodes) != 1 or not _is_simple(nodes[0]):
            return None
        new = nodes[0]
        same = new.lineno == old.lineno and new.end_lineno == old.end_lineno
        return new if same and new.col_offset == column else None


def _replaced(
    nodes: list[ast.stmt], first: int, last: int, edited: _Edited
) -> list[ast.stmt] | None:
    for index, node in enumerate(nodes):
        if not (first_line(node) <= first and last <= last_line(node)):
            continue
        if _shares_lines(nodes, index):
            return None
        new = edited.parsed(node) if _is_simple(node) else _with_block(node, first, last, edited)
        return None if new is None else [*nodes[:index], new, *nodes[index + 1 :]]
    return None


def _with_block(node: ast.stmt, first: int, last: int, edited: _Edited) -> ast.stmt | None:
    """A copy of a compound statement with the edited statement in one of its blocks."""
    for field in ("body", "orelse", "finalbody"):
        block: list[ast.stmt] | None = getattr(node, field, None)
        found = _replaced(block, first, last, edited) if block else None
        if found is not None:
            new = copy(node)
            setattr(new, field, found)
            return new
    return None


def _is_simple(node: ast.stmt) -> bool:
    return not hasattr(node, "body") and not isinstance(node, ast.Match)


def _shares_lines(nodes: list[ast.stmt], index: int) -> bool:
    """Whether a statement beside it begins or ends on a line of a statement."""
    node = nodes[index]
    return (index > 0 and last_line(nodes[index - 1]) >= first_line(node)) or (
        index + 1 < len(nodes) and first_line(nodes[index + 1]) <= last_line(node)
    )


def same_definition(old: Unit, new: Unit) -> bool:
    """Whether both are one function or method with the same head: who only names it need not be checked again."""
    first, second = old.nodes[0], new.nodes[0]
    if not (old.is_definition and new.is_definition and first.__class__ is second.__class__):
        return False
    if not isinstance(first, FUNCTIONS) or not isinstance(second, FUNCTIONS):
        return False
    heads = _head(first), _head(second)
    return (
        first.name == second.name
        and len(heads[0]) == len(heads[1])
        and all(a is b or ast.dump(a) == ast.dump(b) for a, b in zip(*heads, strict=True))
    )


def _head(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.AST]:
    parts = (function.args, function.returns, *function.decorator_list)
    return [part for part in parts if part is not None]
