"""The pieces a file is analysed in: top-level statements, and the members of top-level classes.

A unit is parsed, walked and checked on its own. An edit inside one unit leaves the trees, tables and findings of all
others as they are; a unit that only moved keeps its nodes' line numbers and knows by how much it moved (`shift`).
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ranksafe.pausing import pause_point
from ranksafe.semantics.walking import FUNCTIONS, Scope, Tables, Walk

if TYPE_CHECKING:
    from ranksafe.source.text import SourceText

_identities = itertools.count(1)


def first_line(statement: ast.stmt) -> int:
    """0-based first line of a statement, its decorators included."""
    decorators: list[ast.expr] | None = getattr(statement, "decorator_list", None)
    if decorators:
        return min(statement.lineno, decorators[0].lineno) - 1
    return statement.lineno - 1


def last_line(statement: ast.stmt) -> int:
    """0-based last line of a statement."""
    return (statement.end_lineno or statement.lineno) - 1


class Unit:
    """One piece of a file."""

    __slots__ = (
        "attributes",
        "by_kind",
        "calls_by_name",
        "cls",
        "end",
        "identity",
        "indent",
        "node_ids",
        "nodes",
        "owner",
        "parsed_start",
        "results",
        "scope",
        "start",
        "text",
        "version",
    )

    def __init__(self, nodes: list[ast.stmt], owner: ClassUnit | None, text: str) -> None:
        self.identity = next(_identities)
        self.nodes = nodes
        """Statements that share lines (``a; b``) form one unit."""
        self.owner = owner
        """The class this unit is a member of."""
        self.start = first_line(nodes[0])
        self.end = max(last_line(node) for node in nodes)
        self.parsed_start = self.start
        self.indent = nodes[0].col_offset
        self.text = text
        self.version = 0
        self.scope: Scope
        self.by_kind: dict[type[ast.AST], list[ast.AST]] = {}
        self.calls_by_name: dict[str, list[ast.Call]] | None = None
        self.node_ids: list[int] = []
        self.attributes: dict[str, list[ast.AST]] = {}
        self.results: dict[str, Any] = {}
        """What later layers computed for this unit, by task; dropped with the unit's version."""

    @property
    def shift(self) -> int:
        """Lines the unit has moved since its nodes were parsed."""
        return self.start - self.parsed_start

    def moved(self, start: int, end: int) -> Unit:
        """The unit, with the lines it has in the file by now."""
        self.start, self.end = start, end
        return self

    @property
    def bound_names(self) -> Iterator[str]:
        """Names this unit binds in the module (or, for a member, in its class)."""
        return iter(self.scope.bindings)

    @property
    def is_definition(self) -> bool:
        """Whether the unit is one function or class: others read its name without reading its body."""
        return len(self.nodes) == 1 and isinstance(self.nodes[0], (*FUNCTIONS, ast.ClassDef))

    @property
    def defines_class(self) -> bool:
        """Whether a class is defined in the unit."""
        return ast.ClassDef in self.by_kind

    def calls(self) -> dict[str, list[ast.Call]]:
        """Calls in the unit by the last segment of the callee as written."""
        if self.calls_by_name is None:
            found: dict[str, list[ast.Call]] = {}
            for call in self.by_kind.get(ast.Call, ()):
                name = callee_name(call)  # type: ignore[arg-type]
                if name is not None:
                    found.setdefault(name, []).append(call)  # type: ignore[arg-type]
            self.calls_by_name = found
        return self.calls_by_name

    def walk(self, tables: Tables, parent: ast.AST, module_scope: Scope) -> None:
        """(Re)build the unit's tables."""
        walk = Walk(tables)
        self.scope = self._scope(module_scope)
        for node in self.nodes:
            walk.run(node, parent, self.scope, skip_body_of=self._class_node())
        self.by_kind = walk.by_kind
        self.node_ids = walk.node_ids
        self.attributes = walk.attributes
        self.calls_by_name = None

    def _scope(self, module_scope: Scope) -> Scope:
        if self.owner is not None:
            return Scope(self.owner.node, module_scope, "class")
        return Scope(module_scope.node, None, "module")

    def _class_node(self) -> ast.ClassDef | None:
        return None


class ClassUnit(Unit):
    """A top-level class: the unit itself is its header (decorators, bases); the members are units of their own."""

    __slots__ = ("header_end", "members")

    def __init__(self, node: ast.ClassDef, text: str) -> None:
        super().__init__([node], None, text)
        self.members: list[Unit] = []
        self.header_end = first_line(node.body[0]) - 1

    @property
    def node(self) -> ast.ClassDef:
        """The class statement; its body holds the members' current nodes."""
        return self.nodes[0]  # type: ignore[return-value]

    def _class_node(self) -> ast.ClassDef | None:
        return self.node


def callee_name(call: ast.Call) -> str | None:
    """Last segment of the callee as written: ``f`` for ``f()`` and ``a.b.f()``."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    if isinstance(function, ast.Name):
        return function.id
    return None


def grouped_by_line(body: list[ast.stmt]) -> list[list[ast.stmt]]:
    """Statements in source order, those that share a line together."""
    groups: list[list[ast.stmt]] = []
    end = -1
    for statement in body:
        if groups and first_line(statement) <= end:
            groups[-1].append(statement)
        else:
            groups.append([statement])
        end = max(end, last_line(statement))
    return groups


def units_of(tree: ast.Module, source: SourceText) -> list[Unit]:
    """The units of a freshly parsed file, in source order; not walked yet."""
    units: list[Unit] = []
    for group in grouped_by_line(tree.body):
        pause_point()
        text = _text_of(group, source)
        node = group[0]
        if len(group) == 1 and isinstance(node, ast.ClassDef) and _members_on_own_lines(node):
            cls = ClassUnit(node, _lines(source, first_line(node), first_line(node.body[0]) - 1))
            cls.members = [
                Unit(member, cls, _text_of(member, source)) for member in grouped_by_line(node.body)
            ]
            units.append(cls)
        else:
            units.append(Unit(group, None, text))
    return units


def _members_on_own_lines(node: ast.ClassDef) -> bool:
    """Not so for ``class A: x = 1``, where header and body share a line."""
    before = [node.lineno, *(base.end_lineno or 0 for base in node.bases)]
    before += [keyword.end_lineno or 0 for keyword in node.keywords]
    return first_line(node.body[0]) >= max(before)


def _text_of(group: list[ast.stmt], source: SourceText) -> str:
    return _lines(source, first_line(group[0]), max(last_line(node) for node in group))


def _lines(source: SourceText, first: int, last: int) -> str:
    return "".join(source.lines[first : last + 1])
