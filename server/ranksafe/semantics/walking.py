"""One iterative walk over a statement: parents, scopes, bindings, and nodes by kind.

Everything is kept in side tables keyed by ``id(node)``: storing parents on the nodes would make every tree cyclic,
and collecting those cycles costs more than analysing the file.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable
from itertools import repeat
from typing import Any, Final

_WITHOUT_CHILDREN: Final = frozenset(
    {"ctx", "op", "ops", "id", "attr", "arg", "module", "level", "type_comment", "kind", "n", "s"}
    | {
        "asname",
        "is_async",
        "simple",
        "conversion",
        "type_ignores",
        "lineno",
        "tag",
        "rest",
        "kwd_attrs",
    }
)


def _child_fields() -> dict[type[ast.AST], tuple[str, ...]]:
    fields: dict[type[ast.AST], tuple[str, ...]] = {}
    for kind in vars(ast).values():
        if isinstance(kind, type) and issubclass(kind, ast.AST):
            fields[kind] = tuple(
                name
                for name in kind._fields
                if name not in _WITHOUT_CHILDREN
                and not (name == "names" and kind in (ast.Global, ast.Nonlocal))
                and not (name == "name" and kind is not getattr(ast, "TypeAlias", None))
            )
    fields[ast.Constant] = ()
    fields[ast.MatchSingleton] = ()
    fields[ast.alias] = ()
    return fields


CHILD_FIELDS: Final = _child_fields()
"""Fields of each node kind that hold nodes or lists of nodes."""


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below a node, names' contexts and operators left out."""
    found: list[ast.AST] = []
    for field in CHILD_FIELDS[node.__class__]:
        value = getattr(node, field)
        if value.__class__ is list:
            found += value if None not in value else [item for item in value if item is not None]
        elif value is not None:
            found.append(value)
    return found


def nodes_in(node: ast.AST) -> list[ast.AST]:
    """A node and all below it in the order of `ast.walk`, in a third of its time: without contexts and operators."""
    found = [node]
    for current in found:
        found += children(current)
    return found


def unparsed(node: ast.AST) -> str:
    """`ast.unparse`; what is nested more deeply than that can follow has its place for a text."""
    try:
        return ast.unparse(node)  # noqa: TID251
    except RecursionError:
        return f"<{getattr(node, 'lineno', 0)}:{getattr(node, 'col_offset', 0)}>"


FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS: Final = frozenset({ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp})


class Scope:
    """Names bound in a module, class, function, lambda or comprehension."""

    __slots__ = ("bindings", "globals", "kind", "node", "parent")

    def __init__(self, node: ast.AST, parent: Scope | None, kind: str) -> None:
        self.node = node
        self.parent = parent
        self.kind = kind
        """``module``, ``class``, ``function`` (lambdas too) or ``comprehension``."""
        self.bindings: dict[str, list[ast.AST]] = {}
        self.globals: set[str] = set()

    def bind(self, name: str, node: ast.AST) -> None:
        """Add a binding."""
        self.bindings.setdefault(name, []).append(node)


class Tables:
    """Side tables of one document. Entries live as long as the trees they describe."""

    __slots__ = ("parents", "scopes")

    def __init__(self) -> None:
        self.parents: dict[int, ast.AST] = {}
        self.scopes: dict[int, Scope] = {}

    def forget(self, node_ids: list[int]) -> None:
        """Drop the entries of nodes that are about to die: their ids will be used again."""
        for table in (self.parents, self.scopes):
            # Some ten thousand at a key in a long function.
            deque(map(table.pop, node_ids, repeat(None)), maxlen=0)


class Walk:
    """What one walk over ``root`` found; fills ``tables``."""

    __slots__ = ("_skipped", "_stack", "attributes", "by_kind", "node_ids", "tables")

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.by_kind: dict[type[ast.AST], list[ast.AST]] = {}
        self.node_ids: list[int] = []
        self.attributes: dict[str, list[ast.AST]] = {}
        self._stack: list[tuple[ast.AST, Scope]] = []
        self._skipped: ast.AST | None = None

    def run(
        self, root: ast.AST, parent: ast.AST, scope: Scope, *, skip_body_of: ast.AST | None = None
    ) -> None:
        """Walk ``root``; with ``skip_body_of`` the body of that class is left out (its members are walked apart)."""
        self._skipped = skip_body_of
        parents, scopes = self.tables.parents, self.tables.scopes
        by_kind, ids = self.by_kind, self.node_ids
        parents[id(root)] = parent
        stack = self._stack
        stack.append((root, scope))
        fields, special, name, load = CHILD_FIELDS, _SPECIAL, ast.Name, ast.Load
        while stack:
            node, scope = stack.pop()
            kind = node.__class__
            key = id(node)
            bucket = by_kind.get(kind)
            if bucket is None:
                by_kind[kind] = [node]
            else:
                bucket.append(node)
            scopes[key] = scope
            ids.append(key)
            if kind is name:  # every third node
                if node.ctx.__class__ is not load:  # type: ignore[attr-defined]
                    self._bind_name(node, scope)  # type: ignore[arg-type]
                continue
            enter = special.get(kind)
            if enter is not None:
                inner = enter(self, node, scope)
                if inner is None:
                    continue
                scope = inner
            for field in fields[kind]:
                value = getattr(node, field)
                if value.__class__ is list:
                    for child in value:
                        if child is not None:
                            parents[id(child)] = node
                            stack.append((child, scope))
                elif value is not None:
                    parents[id(value)] = node
                    stack.append((value, scope))

    # -- what is special about a kind of node: each gives the scope of its children, or None where it has seen to them

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Scope:
        self.attributes.setdefault(node.attr, []).append(node)
        return scope

    def _lambda(self, node: ast.Lambda, scope: Scope) -> None:
        inner = Scope(node, scope, "function")
        self._bind_arguments(node.args, node, inner)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self._push(default, node, scope)
        self._push(node.body, node, inner)

    def _comprehension(self, node: ast.AST, scope: Scope) -> Scope:
        return Scope(node, scope, "comprehension")

    def _import(self, node: ast.Import, scope: Scope) -> None:
        for alias in node.names:
            self._leaf(alias, node, scope)
            scope.bind(alias.asname or alias.name.split(".")[0], alias)

    def _import_from(self, node: ast.ImportFrom, scope: Scope) -> None:
        for alias in node.names:
            self._leaf(alias, node, scope)
            scope.bind(alias.asname or alias.name, alias)

    def _declaration(self, node: ast.Global | ast.Nonlocal, scope: Scope) -> None:
        scope.globals.update(node.names)

    def _named(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar, scope: Scope) -> Scope:
        if node.name:
            scope.bind(node.name, node)
        return scope

    def _mapping(self, node: ast.MatchMapping, scope: Scope) -> Scope:
        if node.rest:
            scope.bind(node.rest, node)
        return scope

    def _bind_name(self, node: ast.Name, scope: Scope) -> None:
        target = scope
        # A walrus inside a comprehension binds in the scope around it (PEP 572).
        if (
            target.kind == "comprehension"
            and self.tables.parents[id(node)].__class__ is ast.NamedExpr
        ):
            while target.kind == "comprehension" and target.parent is not None:
                target = target.parent
        if node.id in target.globals:
            while target.parent is not None:
                target = target.parent
        target.bind(node.id, node)

    def _push(self, node: ast.AST, parent: ast.AST, scope: Scope) -> None:
        self.tables.parents[id(node)] = parent
        self._stack.append((node, scope))

    def _leaf(self, node: ast.AST, parent: ast.AST, scope: Scope) -> None:
        key = id(node)
        self.tables.parents[key] = parent
        self.tables.scopes[key] = scope
        self.node_ids.append(key)

    def _bind_arguments(self, arguments: ast.arguments, owner: ast.AST, inner: Scope) -> None:
        for argument in (
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            *filter(None, (arguments.vararg, arguments.kwarg)),
        ):
            self._leaf(argument, owner, inner)
            inner.bind(argument.arg, argument)
        self._leaf(arguments, owner, inner)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        (_outermost(scope) if node.name in scope.globals else scope).bind(node.name, node)
        inner = Scope(node, scope, "function")
        self._bind_arguments(node.args, node, inner)
        outside: list[ast.AST | None] = [
            *node.decorator_list,
            *node.args.defaults,
            *node.args.kw_defaults,
            node.returns,
        ]
        outside += [
            argument.annotation
            for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        ]
        for child in outside:
            if child is not None:
                self._push(child, node, scope)
        for statement in node.body:
            self._push(statement, node, inner)

    def _class(self, node: ast.ClassDef, scope: Scope) -> None:
        scope.bind(node.name, node)
        for child in (*node.decorator_list, *node.bases, *node.keywords):
            self._push(child, node, scope)
        if node is not self._skipped:
            inner = Scope(node, scope, "class")
            for statement in node.body:
                self._push(statement, node, inner)


_SPECIAL: Final[dict[type[ast.AST], Callable[[Walk, Any, Scope], Scope | None]]] = {
    ast.Attribute: Walk._attribute,
    ast.FunctionDef: Walk._function,
    ast.AsyncFunctionDef: Walk._function,
    ast.ClassDef: Walk._class,
    ast.Lambda: Walk._lambda,
    **dict.fromkeys(_COMPREHENSIONS, Walk._comprehension),
    ast.Import: Walk._import,
    ast.ImportFrom: Walk._import_from,
    ast.Global: Walk._declaration,
    ast.Nonlocal: Walk._declaration,
    ast.ExceptHandler: Walk._named,
    ast.MatchAs: Walk._named,
    ast.MatchStar: Walk._named,
    ast.MatchMapping: Walk._mapping,
}


def _outermost(scope: Scope) -> Scope:
    while scope.parent is not None:
        scope = scope.parent
    return scope
