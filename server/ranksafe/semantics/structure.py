"""What stands where in one file: names bound, classes with their methods and attributes, nodes of a kind.

Nothing here asks what an expression means (see `ranksafe.semantics.module`) or what other files say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ranksafe.semantics.unit_store import UnitStore
from ranksafe.semantics.walking import FUNCTIONS, Scope, nodes_in

Function = ast.FunctionDef | ast.AsyncFunctionDef


class ModuleStructure(UnitStore):
    """Structural queries about one file; each notes what it read."""

    # -- names bound

    def module_bindings(self, name: str) -> list[ast.AST]:
        """Nodes that bind a name at module level, in source order."""
        self.note("binding", name)
        found = self._module_bindings.get(name)
        if found is not None:
            return found
        found = [
            node
            for unit in self.units_binding.get(name, ())
            for node in unit.scope.bindings.get(name, ())
        ]
        extra = self.module_scope.bindings.get(name)
        if extra:
            found += extra
        if len(found) > 1:
            found.sort(key=self.order_of)
        self._module_bindings[name] = found
        return found

    def is_rebound(self, name: str) -> bool:
        """Whether some function of the file declares the name ``global``."""
        self.note("global", name)
        return any(
            name in statement.names  # type: ignore[attr-defined]
            for unit in self.all_units()
            for statement in unit.by_kind.get(ast.Global, ())
        )

    def class_bindings(self, scope: Scope, name: str) -> list[ast.AST]:
        """Nodes that bind a name in a class body, in source order."""
        unit = self._class_units.get(id(scope.node))
        if unit is None:
            return scope.bindings.get(name, [])
        self.note("member", unit.identity, name)
        return [
            node
            for member in unit.members
            for node in sorted(member.scope.bindings.get(name, ()), key=self.order_of)
        ]

    def bindings(self, use: ast.Name) -> tuple[Scope | None, list[ast.AST]]:
        """The scope that binds the name at ``use``, with all binding nodes in source order (empty: not bound)."""
        scope: Scope | None = self.scope_of(use)
        name = use.id
        own = True
        while scope is not None:
            if scope.kind == "module" or name in scope.globals:
                return self.module_scope, self.module_bindings(name)
            if scope.kind == "class":
                if own:
                    found = self.class_bindings(scope, name)
                    if found:
                        return scope, found
            else:
                found = scope.bindings.get(name, [])
                if found:
                    if len(found) > 1:
                        found = sorted(found, key=self.order_of)
                    return scope, found
                # A comprehension in a class body does not see the class's names, a plain statement does.
                own = False
            scope = scope.parent
        return None, []

    def loads_of_same_name(self, name: ast.Name) -> list[ast.Name]:
        """Reads of the variable that ``name`` belongs to, in source order, inner functions included."""
        scope, _ = self.bindings(name)
        if scope is None:
            return []
        if scope.kind == "module":
            self.note("loads", name.id)
            nodes: Iterable[ast.AST] = (
                node for unit in self.all_units() for node in unit.by_kind.get(ast.Name, ())
            )
        else:
            nodes = nodes_in(scope.node)
        found = [
            node
            for node in nodes
            if isinstance(node, ast.Name)
            and node.id == name.id
            and (isinstance(node.ctx, ast.Load))
            and self.bindings(node)[0] is scope
        ]
        found.sort(key=self.order_of)
        return found

    def assigned_value(self, target: ast.Name) -> ast.expr | None:
        """The expression that a plain assignment gives to the name (element by element for tuples), else None."""
        parent = self.parent(target)
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            return parent.value
        element = self._assigned_element(target, parent)
        return None if isinstance(element, ast.Starred) else element

    def _assigned_element(self, target: ast.expr, parent: ast.AST | None) -> ast.expr | None:
        """The expression that ``a, b = x, y`` gives to one of the targets."""
        if isinstance(parent, (ast.Tuple, ast.List)):
            statement = self.parent(parent)
            if isinstance(statement, ast.Assign) and isinstance(
                statement.value, (ast.Tuple, ast.List)
            ):
                if len(statement.value.elts) == len(parent.elts):
                    index = next(i for i, item in enumerate(parent.elts) if item is target)
                    return statement.value.elts[index]
        return None

    # -- classes

    def definition(
        self, parts: list[str]
    ) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | None:
        """The function, class or method with a name in this file (``["Class", "method"]``)."""
        bindings: Iterable[ast.AST] = self.module_bindings(parts[0])
        for index, part in enumerate(parts):
            found = [
                item
                for item in bindings
                if isinstance(item, (*FUNCTIONS, ast.ClassDef)) and item.name == part
            ]
            if not found:
                return None
            if index == len(parts) - 1:
                return found[-1]
            bindings = self.body_of(found[-1]) if isinstance(found[-1], ast.ClassDef) else []
        return None

    def body_of(self, cls: ast.ClassDef) -> list[ast.stmt]:
        """The statements of a class body."""
        unit = self._class_units.get(id(cls))
        if unit is not None:
            self.note("class", unit.identity)
        return cls.body

    def binds_in_class(self, cls: ast.ClassDef, name: str) -> bool:
        """Whether the class body gives a name a value."""
        unit = self._class_units.get(id(cls))
        if unit is None:
            return any(
                isinstance(item, ast.Name) and item.id == name and isinstance(item.ctx, ast.Store)
                for statement in cls.body
                if isinstance(statement, (ast.Assign, ast.AnnAssign))
                for item in ast.walk(statement)
            )
        self.note("member", unit.identity, name)
        return any(
            isinstance(binding, ast.Name)
            for member in unit.members
            for binding in member.scope.bindings.get(name, ())
        )

    def method(self, cls: ast.ClassDef, name: str) -> Function | None:
        """A method defined in the class itself, to be looked into; of several definitions the last."""
        found = self._method(cls, name)
        if found is not None:
            self.note_unit_of(found)
        return found

    def has_method(self, cls: ast.ClassDef, name: str) -> bool:
        """Whether the class itself defines a method: who asks no more than this need not be checked again when the
        method's body is edited."""
        return self._method(cls, name) is not None

    def _method(self, cls: ast.ClassDef, name: str) -> Function | None:
        unit = self._class_units.get(id(cls))
        if unit is not None:
            self.note("member", unit.identity, name)
        named: dict[str, Function] = self.memoized("methods", cls, 0, _methods_by_name)
        return named.get(name)

    def methods(self, cls: ast.ClassDef) -> list[Function]:
        """All functions defined in the class body."""
        return [item for item in self.body_of(cls) if isinstance(item, FUNCTIONS)]

    def methods_named(self, name: str) -> list[Function]:
        """Methods of this name of the file's top-level classes."""
        found: list[Function] = self.memoized(
            f"methods {name}", self.tree, 0, lambda _node, _depth: self._find_methods(name)
        )
        return found

    def _find_methods(self, name: str) -> list[Function]:
        self.note("method", name)
        return [
            node
            for unit in self.all_units()
            if unit.owner is not None
            for node in unit.nodes
            if isinstance(node, FUNCTIONS) and node.name == name
        ]

    def self_name(self, method: ast.AST) -> str | None:
        """The name of a method's first parameter (``self``), None for functions and static methods."""
        if not isinstance(method, FUNCTIONS) or not isinstance(self.parent(method), ast.ClassDef):
            return None
        positional = [*method.args.posonlyargs, *method.args.args]
        return positional[0].arg if positional and is_method(method) else None

    def class_of_self(self, node: ast.AST) -> ast.ClassDef | None:
        """The class whose instance a ``self`` expression is, None when it is not a method's first parameter."""
        if not isinstance(node, ast.Name):
            return None
        scope: Scope | None = self.scope_of(node)
        while scope is not None and scope.kind != "module":
            if scope.kind in ("function", "comprehension") and node.id in scope.bindings:
                method = scope.node
                if self.self_name(method) == node.id and len(scope.bindings[node.id]) == 1:
                    return self.parent(method)  # type: ignore[return-value]
                return None
            scope = scope.parent
        return None

    # -- attributes

    def attribute_stores(self, cls: ast.ClassDef, attribute: str) -> list[ast.Attribute]:
        """Where the class's methods assign ``self.attribute``, in source order."""
        return self._attributes("attribute stores", cls, attribute, ast.Store)

    def attribute_loads(self, cls: ast.ClassDef, attribute: str) -> list[ast.Attribute]:
        """Where the class's methods read ``self.attribute``, in source order."""
        return self._attributes("attribute loads", cls, attribute, ast.Load)

    def _attributes(
        self, query: str, cls: ast.ClassDef, attribute: str, context: type[ast.expr_context]
    ) -> list[ast.Attribute]:
        found: list[ast.Attribute] = self.memoized(
            f"{query} {attribute}",
            cls,
            0,
            lambda _node, _depth: self._find_attributes(query, cls, attribute, context),
        )
        return found

    def _find_attributes(
        self, query: str, cls: ast.ClassDef, attribute: str, context: type[ast.expr_context]
    ) -> list[ast.Attribute]:
        unit = self._class_units.get(id(cls))
        if unit is None:
            around = self.unit_of(cls)
            units = [] if around is None else [around]
        else:
            self.note(query, unit.identity, attribute)
            units = unit.members
        found = [
            node
            for holder in units
            for node in holder.attributes.get(attribute, ())
            if isinstance(node, ast.Attribute)
            and isinstance(node.ctx, context)
            and self.class_of_self(node.value) is cls
        ]
        found.sort(key=self.order_of)
        return found

    def assigned_to_attribute(self, store: ast.Attribute) -> ast.expr | None:
        """The expression a plain assignment gives to ``self.x``."""
        parent = self.parent(store)
        if isinstance(parent, (ast.Assign, ast.AnnAssign)):
            return parent.value
        return self._assigned_element(store, parent)

    # -- nodes

    def nodes(self, kind: type[ast.AST], inside: ast.AST | None = None) -> Iterator[ast.AST]:
        """All nodes of a kind in the file, or inside a node (itself included), in source order."""
        if inside is None:
            everywhere: list[ast.AST] = self.memoized(
                f"nodes {kind.__name__}", self.tree, 0, lambda _node, _depth: self._all_nodes(kind)
            )
            return iter(everywhere)
        if isinstance(inside, ast.ClassDef):
            self.body_of(inside)
        else:
            self.note_unit_of(inside)
        found = [node for node in nodes_in(inside) if isinstance(node, kind)]
        found.sort(key=self.order_of)
        return iter(found)

    def _all_nodes(self, kind: type[ast.AST]) -> list[ast.AST]:
        self.note("all")
        found = [node for unit in self.all_units() for node in unit.by_kind.get(kind, ())]
        return sorted(found, key=self.order_of)

    def returns_of(self, function: ast.AST) -> list[ast.Return]:
        """The function's own return statements, those of nested functions left out."""
        self.note_unit_of(function)
        unit = self.unit_of(function)
        candidates = nodes_in(function) if unit is None else unit.by_kind.get(ast.Return, ())
        return [
            node
            for node in candidates
            if isinstance(node, ast.Return) and self.enclosing_function(node) is function
        ]

    def calls_written(self, name: str) -> list[ast.Call]:
        """Calls anywhere in the file whose callee's last segment is written ``name``."""
        found: list[ast.Call] = self.memoized(
            f"calls written {name}", self.tree, 0, lambda _node, _depth: self._find_calls(name)
        )
        return found

    def _find_calls(self, name: str) -> list[ast.Call]:
        self.note("called", name)
        return list(self.calls_by_name().get(name, ()))

    def calls_by_name(self) -> dict[str, list[ast.Call]]:
        """All calls by the last segment of the callee as written; who asks says himself what he read."""
        found: dict[str, list[ast.Call]] = self.memoized("calls", self.tree, 0, self._all_calls)
        return found

    def _all_calls(self, _tree: ast.AST, _depth: int) -> dict[str, list[ast.Call]]:
        """By name; asked for every function of a file."""
        found: dict[str, list[ast.Call]] = {}
        for unit in self.all_units():
            for name, calls in unit.calls().items():
                found.setdefault(name, []).extend(calls)
        return found

    def read_unit_of(self, node: ast.AST) -> None:
        """Used by rank flow: an answer depends on all of the unit that holds a node."""
        self.note_unit_of(node)

    def note_early_exits(self) -> None:
        """Used by the guards: an answer depends on the module-level branches and assertions before a statement."""
        self.note("exits")


def _methods_by_name(cls: ast.ClassDef, _depth: int) -> dict[str, Function]:
    return {item.name: item for item in cls.body if isinstance(item, FUNCTIONS)}


def is_method(node: ast.AST) -> bool:
    """Whether a definition is a plain method (not static)."""
    return isinstance(node, FUNCTIONS) and not any(
        isinstance(item, ast.Name) and item.id == "staticmethod" for item in node.decorator_list
    )
