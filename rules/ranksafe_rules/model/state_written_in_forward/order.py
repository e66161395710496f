"""The order in which a method, and the methods it calls, read and write attributes of ``self``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ranksafe_rules._shared.captures import alternatives
from ranksafe_rules._shared.replicated_class import ReplicatedClass

_MAXIMUM_DEPTH = 6
_TESTS = (ast.Compare, ast.BoolOp, ast.UnaryOp)
_MOVES = frozenset({"to", "cuda", "cpu", "type_as", "type", "half", "float", "contiguous"})


@dataclass(frozen=True, slots=True)
class Access:
    """One read or write of ``self.attribute``."""

    attribute: str
    node: ast.Attribute
    is_write: bool
    is_update: bool
    """``self.x += 1``: reads before it writes."""
    is_lazy: bool
    """A cache, which a replica merely fills again: a write under a condition that asks the attribute itself
    (``if self.table is None``), or of the same value moved (``self.table = self.table.to(x.device)``)."""


def accesses(view: ReplicatedClass, start: str) -> list[Access]:
    """Accesses in the order of evaluation, called methods and properties included; both branches of a condition
    count. Methods reached only through tables or ``getattr`` come last."""
    found: list[Access] = []
    method = view.methods.get(start)
    if method is None:
        return found
    walk = _Walk(view)
    found += walk.method(start, frozenset(), 0)
    if start == "forward":
        for item in view.in_forward:
            if item.name not in walk.visited:
                found += walk.method(item.name, frozenset(), 0)
    return found


class _Walk:
    """One walk from a method through those it calls; each is entered once."""

    def __init__(self, view: ReplicatedClass) -> None:
        self._view = view
        self.visited: set[str] = set()

    def method(self, name: str, asked: frozenset[str], depth: int) -> Iterator[Access]:
        """``asked``: attributes that conditions around the call ask about."""
        self.visited.add(name)
        if depth > _MAXIMUM_DEPTH:
            return
        yield from self._block(self._view.methods[name].body, asked, depth)

    def _block(
        self, statements: list[ast.stmt], asked: frozenset[str], depth: int
    ) -> Iterator[Access]:
        for statement in statements:
            yield from self._node(statement, asked, depth)
            if isinstance(statement, ast.If) and _returns(statement):
                # ``if n == self.length: return self.table``: the rest makes both anew.
                asked |= _asked_about(self._view, statement)

    def _node(self, node: ast.AST, asked: frozenset[str], depth: int) -> Iterator[Access]:
        if isinstance(node, ast.If):
            yield from self._node(node.test, asked, depth)
            asked |= _asked_about(self._view, node.test)
            yield from self._block(node.body, asked, depth)
            yield from self._block(node.orelse, asked, depth)
            return
        for child in _in_evaluation_order(node):
            yield from self._node(child, asked, depth)
        attribute = self._view.self_attribute(node)
        if attribute is None or not isinstance(node, ast.Attribute):
            return
        if attribute in self._view.methods:
            if attribute not in self.visited:
                yield from self.method(attribute, asked, depth + 1)
            return
        is_write = isinstance(node.ctx, ast.Store)
        is_lazy = attribute in asked or _is_same_value(self._view, node)
        yield Access(
            attribute=attribute,
            node=node,
            is_write=is_write,
            is_update=is_write and isinstance(self._view.module.parent(node), ast.AugAssign),
            is_lazy=is_write and is_lazy,
        )


def _in_evaluation_order(node: ast.AST) -> list[ast.AST]:
    """Children, with the value of an assignment before its targets."""
    if isinstance(node, ast.Assign):
        return [node.value, *node.targets]
    if isinstance(node, ast.AnnAssign):
        return [item for item in (node.value, node.target) if item is not None]
    if isinstance(node, ast.AugAssign):
        return [node.value, node.target]
    return list(ast.iter_child_nodes(node))


def _asked_about(view: ReplicatedClass, test: ast.AST) -> frozenset[str]:
    """Attributes that a condition looks at: ``self.x``, a variable that holds it, ``hasattr(self, "x")``."""
    found = {item.attr for item in view.attributes(test)}
    for node in ast.walk(test):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        elif isinstance(node, ast.Name):
            for value in view.module.flow.assigned_values(node):
                if isinstance(value, _TESTS):
                    found |= _asked_about(view, value)
                elif name := view.self_attribute(value):
                    found.add(name)
    return frozenset(found)


def _returns(node: ast.If) -> bool:
    return any(arm and isinstance(arm[-1], ast.Return) for arm in (node.body, node.orelse))


def _is_same_value(view: ReplicatedClass, target: ast.Attribute) -> bool:
    """``self.x = self.x.to(device)``, also as one side of a conditional expression."""
    value = view.module.assigned_to_attribute(target)
    if value is None:
        return False
    sides = [item for item in alternatives(value) if not isinstance(item, ast.Constant)]
    return bool(sides) and all(
        isinstance(item, ast.Call)
        and isinstance(item.func, ast.Attribute)
        and item.func.attr in _MOVES
        and view.self_attribute(item.func.value) == target.attr
        for item in sides
    )
