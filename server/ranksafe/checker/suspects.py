"""Which lines are likely to be what broke a text: those that were typed last."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ranksafe.semantics.module import Module
from ranksafe.semantics.units import ClassUnit, first_line, last_line
from ranksafe.source.recovery import edited_lines


@dataclass(frozen=True, slots=True)
class Suspects:
    """An edit, told by lines (0-based) of the text before it."""

    first: int
    last: int
    blanked: frozenset[int]
    """Lines that were broken before the edit already."""
    statement: tuple[int, int] | None
    """First and last line of the statement that was edited."""

    def after(self, text: str, added: int) -> list[frozenset[int]]:
        """The suspects in the text after the edit, which has ``added`` lines more; the likeliest first."""
        touched = edited_lines(text, self.first, self.last + added)
        before = frozenset(
            line + (added if line > self.last else 0)
            for line in self.blanked
            if not self.first <= line <= self.last
        )
        if self.statement is not None:
            touched.append(frozenset(range(self.statement[0], self.statement[1] + added + 1)))
        if not before:
            return touched
        return [before, *(before | lines for lines in touched), *touched]


def statement_around(module: Module | None, first: int, last: int) -> tuple[int, int] | None:
    """First and last line of the innermost statement that an edit lies in; of a block only its header."""
    if module is None:
        return None
    found = None
    for unit in module.all_units():
        if not (unit.start <= first and last <= unit.end):
            continue
        for node in unit.nodes:
            # A class's members are units of their own.
            inside = [node] if isinstance(unit, ClassUnit) else ast.walk(node)
            for statement in inside:
                if isinstance(statement, ast.stmt):
                    start, end = (
                        first_line(statement) + unit.shift,
                        _own_end(statement) + unit.shift,
                    )
                    if start <= first and last <= end:
                        found = (start, end)
    return found


def _own_end(statement: ast.stmt) -> int:
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body:
        return max(first_line(body[0]) - 1, first_line(statement))
    return last_line(statement)
