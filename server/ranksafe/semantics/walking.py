"""One iterative walk over a statement: parents, scopes, bindings, and nodes by kind.

Everything is kept in side tables keyed by ``id(node)``: storing parents on the nodes would make every tree cyclic,
and collecting those cycles costs more than analysing the file.
"""

from __future__ import annotations

import ast
from typing import Final

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
        parents, scopes = self.parents, self.scopes
        for node_id in node_ids:
            parents.pop(node_id, None)
            scopes.pop(node_id, None)


class Walk:
    """What one walk over ``root`` found; fills ``tables``."""

    __slots__ = ("_stack", "attributes", "by_kind", "node_ids", "tables")

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.by_kind: dict[type[ast.AST], list[ast.AST]] = {}
        self.node_ids: list[int] = []
        self.attributes: dict[str, list[ast.AST]] = {}
        self._stack: list[tuple[ast.AST, Scope]] = []

    def run(
        self, root: ast.AST, parent: ast.AST, scope: Scope, *, skip_body_of: ast.AST | None = None
    ) -> None:
        """Walk ``root``; with ``skip_body_of`` the body of that class is left out (its members are walked apart)."""
        parents, scopes = self.tables.parents, self.tables.scopes
        by_kind, ids, attributes = self.by_kind, self.node_ids, self.attributes
        parents[id(root)] = parent
        stack = self._stack
        stack.append((root, scope))
        fields = CHILD_FIELDS
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
            if kind is ast.Name:
                if node.ctx.__class__ is not ast.Load:  # type: ignore[attr-defined]
                    self._bind_name(node, scope)  # type: ignore[arg-type]
                continue
            if kind is ast.Attribute:
                attributes.setdefault(node.attr, []).append(node)  # type: ignore[attr-defined]
            elif kind is ast.FunctionDef or kind is ast.AsyncFunctionDef:
                self._enter_function(node, scope)  # type: ignore[arg-type]
                continue
            elif kind is ast.ClassDef:
                self._enter_class(node, scope, with_body=node is not skip_body_of)  # type: ignore[arg-type]
                continue
            elif kind is ast.Lambda:
                inner = Scope(node, scope, "function")
                self._bind_arguments(node.args, node, inner)  # type: ignore[attr-defined]
                for default in (*node.args.defaults, *node.args.kw_defaults):  # type: ignore[attr-defined]
                    if default is not None:
                        self._push(default, node, scope)
                self._push(node.body, node, inner)  # type: ignore[attr-defined]
                continue
            elif kind in _COMPREHENSIONS:
                scope = Scope(node, scope, "comprehension")
            elif kind is ast.Import:
                for alias in node.names:  # type: ignore[attr-defined]
                    self._leaf(alias, node, scope)
                    scope.bind(alias.asname or alias.name.split(".")[0], alias)
                continue
            elif kind is ast.ImportFrom:
                for alias in node.names:  # type: ignore[attr-defined]
                    self._leaf(alias, node, scope)
                    scope.bind(alias.asname or alias.name, alias)
                continue
            elif kind is ast.ExceptHandler:
                if node.name:  # type: ignore[attr-defined]
                    scope.bind(node.name, node)  # type: ignore[attr-defined]
            elif kind is ast.Global or kind is ast.Nonlocal:
                scope.globals.update(node.names)  # type: ignore[attr-defined]
                continue
            elif kind is ast.MatchAs or kind is ast.MatchStar:
                if node.name:  # type: ignore[attr-defined]
                    scope.bind(node.name, node)  # type: ignore[attr-defined]
            elif kind is ast.MatchMapping and node.rest:  # type: ignore[attr-defined]
                scope.bind(node.rest, node)  # type: ignore[attr-defined]
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

    def _enter_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
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

    def _enter_class(self, node: ast.ClassDef, scope: Scope, *, with_body: bool) -> None:
        scope.bind(node.name, node)
        for child in (*node.decorator_list, *node.bases, *node.keywords):
            self._push(child, node, scope)
        if with_body:
            inner = Scope(node, scope, "class")
            for statement in node.body:
                self._push(statement, node, inner)


def _outermost(scope: Scope) -> Scope:
    while scope.parent is not None:
        scope = scope.parent
    return scope
