"""The units of one file with their tables, and a note of what is read from them.

`UnitStore.reading` collects what queries read, so that a cached result is known to hold exactly as long as the things
it read stay the same.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ranksafe.pausing import pause_point
from ranksafe.semantics.units import ClassUnit, Unit, units_of
from ranksafe.semantics.walking import FUNCTIONS, Scope, Tables
from ranksafe.source.position import Position, Range
from ranksafe.source.text import SourceText

ReadKey = tuple[object, ...]
Function = ast.FunctionDef | ast.AsyncFunctionDef


class UnitStore:
    """Units, nodes and their places; knows nothing of what they mean."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.tree = ast.Module(body=[], type_ignores=[])
        self.tables = Tables()
        self.module_scope = Scope(self.tree, None, "module")
        self.units: list[Unit] = []
        self._reads: set[ReadKey] | None = None
        self._unit_of_node: dict[int, Unit] = {}
        self._class_units: dict[int, ClassUnit] = {}
        self.units_binding: dict[str, list[Unit]] = {}
        self._memory: dict[tuple[str, int, int], tuple[Any, frozenset[ReadKey]]] = {}
        self._module_bindings: dict[str, list[ast.AST]] = {}
        self._moved = False

    def fill(self, tree: ast.Module) -> None:
        """Hold all units of a freshly parsed tree: for whoever asks once and keeps nothing up to date."""
        self.units = units_of(tree, self.source)
        self.tree.body = tree.body
        for unit in self.units:
            self.add_unit(unit)

    def add_unit(self, unit: Unit) -> None:
        """Walk a unit and make it known; `units` is kept by the caller."""
        self._module_bindings.clear()
        if unit.owner is None:
            unit.walk(self.tables, self.tree, self.module_scope)
            for name in unit.bound_names:
                self.units_binding.setdefault(name, []).append(unit)
        else:
            unit.walk(self.tables, unit.owner.node, self.module_scope)
        for node in unit.nodes:
            self._unit_of_node[id(node)] = unit
        if isinstance(unit, ClassUnit):
            self._class_units[id(unit.node)] = unit
            for member in unit.members:
                self.add_unit(member)

    def remove_unit(self, unit: Unit) -> None:
        """Forget a unit and all its nodes."""
        self._module_bindings.clear()
        if isinstance(unit, ClassUnit):
            for member in unit.members:
                self.remove_unit(member)
            self._class_units.pop(id(unit.node), None)
        if unit.owner is None:
            for name in unit.bound_names:
                self.units_binding[name].remove(unit)
        for node in unit.nodes:
            self._unit_of_node.pop(id(node), None)
        self.tables.forget(unit.node_ids)

    def text_changed(self, source: SourceText) -> None:
        """Drop what was computed from the text before."""
        self.source = source
        self._memory.clear()
        self._module_bindings.clear()
        self._moved = any(unit.shift for unit in self.all_units())

    def all_units(self) -> Iterator[Unit]:
        """Top-level units and members, in source order."""
        for unit in self.units:
            pause_point()
            yield unit
            if isinstance(unit, ClassUnit):
                yield from unit.members

    @contextmanager
    def reading(self) -> Iterator[set[ReadKey]]:
        """Collect what queries read while the block runs; nested blocks report to the outer ones too."""
        outer = self._reads
        reads: set[ReadKey] = set()
        self._reads = reads
        try:
            yield reads
        finally:
            self._reads = outer
            if outer is not None:
                outer |= reads

    def read_again(self, reads: frozenset[ReadKey]) -> None:
        """An answer that was kept is used again: it depends on what was read for it."""
        if self._reads is not None:
            self._reads |= reads

    def note(self, *key: object) -> None:
        """An answer depends on what ``key`` stands for."""
        if self._reads is not None:
            self._reads.add(key)

    def unit_of(self, node: ast.AST) -> Unit | None:
        """The unit that holds a node."""
        units, parents = self._unit_of_node, self.tables.parents
        current: ast.AST | None = node
        while current is not None:
            unit = units.get(id(current))
            if unit is not None:
                return unit
            current = parents.get(id(current))
        return None

    # -- positions and text

    def _shift_of(self, node: ast.AST) -> int:
        if not self._moved:
            return 0
        unit = self.unit_of(node)
        return unit.shift if unit is not None else 0

    def order_of(self, node: ast.AST) -> tuple[int, int]:
        """A key that sorts nodes of this file as they stand in the source."""
        pause_point()
        return (getattr(node, "lineno", 0) + self._shift_of(node), getattr(node, "col_offset", 0))

    def range_of(self, node: ast.AST) -> Range:
        """Where a node stands; for a function or class its name."""
        shift = self._shift_of(node)
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            line = node.lineno - 1 + shift
            text = self.source.lines[line]
            found = re.compile(rf"\b(?:def|class)\s+({re.escape(node.name)})\b").search(
                text, self.source.column_of_byte(line, node.col_offset)
            )
            if found is not None:
                return Range(Position(line, found.start(1)), Position(line, found.end(1)))
        return self.source.range_of(node, shift)

    def text_of(self, node: ast.AST) -> str:
        """The node's source text."""
        return self.source.slice(self.source.range_of(node, self._shift_of(node)))

    # -- structure

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node around a node; None for the module."""
        return self.tables.parents.get(id(node))

    def scope_of(self, node: ast.AST) -> Scope:
        """The scope a node is evaluated in."""
        return self.tables.scopes.get(id(node), self.module_scope)

    def enclosing_function(self, node: ast.AST) -> Function | None:
        """The innermost function around a node (not the node itself)."""
        current = self.parent(node)
        while current is not None:
            if isinstance(current, FUNCTIONS):
                return current
            current = self.parent(current)
        return None

    def is_inside(self, node: ast.AST, around: ast.AST) -> bool:
        """Whether a node is another one or a part of it."""
        current: ast.AST | None = node
        while current is not None and current is not around:
            current = self.parent(current)
        return current is around

    def enclosing_class(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class around a node (not the node itself)."""
        current = self.parent(node)
        while current is not None:
            if isinstance(current, ast.ClassDef):
                return current
            current = self.parent(current)
        return None

    def memoized(
        self, query: str, node: ast.AST, depth: int, compute: Callable[[Any, int], Any]
    ) -> Any:
        """The answer of a query about a node, computed once per version of the text.

        ``depth`` is part of the key: answers are cut off at a depth, and an answer cut off early must not stand for
        one that was not, else it would matter which question was asked first.
        """
        key = (query, id(node), depth)
        found = self._memory.get(key)
        if found is None:
            pause_point()
            # As `reading` does, which takes longer: asked for every name of a file.
            outer, self._reads = self._reads, set()
            try:
                answer = compute(node, depth)
                reads = frozenset(self._reads)
            finally:
                self._reads = outer
            self._memory[key] = (answer, reads)
            if outer is not None:
                outer |= reads
            return answer
        if self._reads is not None:
            self._reads |= found[1]
        return found[0]

    def note_unit_of(self, node: ast.AST) -> None:
        """An answer depends on all of the unit that holds a node."""
        if self._reads is not None:
            unit = self.unit_of(node)
            if unit is not None:
                self.note("unit", unit.identity)
