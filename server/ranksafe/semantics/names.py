"""What names refer to: bindings, imports, aliases, canonical dotted names."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ranksafe.semantics.libraries import canonical, exported_by
from ranksafe.semantics.walking import FUNCTIONS, Scope

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module

_MAXIMUM_DEPTH = 10
_DEFINITIONS = (*FUNCTIONS, ast.ClassDef)


class Names:
    """Resolves names of one module."""

    def __init__(self, module: Module) -> None:
        self._module = module

    def bindings(self, use: ast.Name) -> tuple[Scope | None, list[ast.AST]]:
        """The scope that binds the name at ``use``, with all binding nodes in source order (empty: not bound)."""
        module = self._module
        scope: Scope | None = module.scope_of(use)
        name = use.id
        own = True
        while scope is not None:
            if scope.kind == "module" or name in scope.globals:
                return module.module_scope, module.module_bindings(name)
            if scope.kind == "class":
                if own:
                    found = module.class_bindings(scope, name)
                    if found:
                        return scope, found
            else:
                found = scope.bindings.get(name, [])
                if found:
                    if len(found) > 1:
                        found = sorted(found, key=module.order_of)
                    return scope, found
                # A comprehension in a class body does not see the class's names, a plain statement does.
                own = False
            scope = scope.parent
        return None, []

    def qualified(self, node: ast.expr, depth: int = 0) -> str | None:
        """See `Module.qualified_name`."""
        if depth > _MAXIMUM_DEPTH:
            return None
        kind = node.__class__
        if kind is ast.Name or kind is ast.Attribute:
            answer: str | None = self._module.memoized("name", node, depth, self._compute)
            return answer
        return None

    def _compute(self, node: ast.expr, depth: int) -> str | None:
        if isinstance(node, ast.Name):
            return self._qualified_name(node, depth)
        assert isinstance(node, ast.Attribute)
        return self._qualified_attribute(node, depth)

    def _qualified_attribute(self, node: ast.Attribute, depth: int) -> str | None:
        base = self.qualified(node.value, depth)
        if base is None:
            return None
        return self._module.canonical(f"{base}.{node.attr}")

    def _qualified_name(self, node: ast.Name, depth: int) -> str | None:
        scope, bindings = self.bindings(node)
        if scope is None or not bindings:
            return self._from_star_import(node.id) or f"builtins.{node.id}"
        if len(bindings) > 1 and not all(binding.__class__ is ast.alias for binding in bindings):
            bindings = self._module.flow.reaching_bindings(node, scope, bindings)
        names = {self.of_binding(binding, depth) for binding in bindings}
        if len(names) == 1:
            return names.pop()
        # ``try: from a import X / except ImportError: from b import X``: the first import is the one that is meant.
        if bindings and all(binding.__class__ is ast.alias for binding in bindings):
            return self.of_binding(bindings[0], depth)
        return None

    def of_binding(self, binding: ast.AST, depth: int = 0) -> str | None:
        """Canonical dotted name of what a binding node binds, or None for an object."""
        module = self._module
        if isinstance(binding, ast.alias):
            statement = module.parent(binding)
            if isinstance(statement, ast.ImportFrom):
                origin = module.absolute_import(statement.module, statement.level)
                return module.canonical(f"{origin}.{binding.name}" if origin else binding.name)
            return module.imported_module(
                binding.name if binding.asname else binding.name.split(".")[0]
            )
        if isinstance(binding, _DEFINITIONS):
            return f"{module.name}.{self._definition_path(binding)}"
        if isinstance(binding, ast.Name):
            assigned = module.flow.assigned_value(binding)
            if assigned is not None and isinstance(assigned, (ast.Name, ast.Attribute)):
                if assigned is binding or depth > _MAXIMUM_DEPTH:
                    return None
                return self.qualified(assigned, depth + 1)
        return None

    def _definition_path(self, definition: ast.AST) -> str:
        parts = [definition.name]  # type: ignore[attr-defined]
        parent = self._module.parent(definition)
        while parent is not None and parent.__class__ is not ast.Module:
            if isinstance(parent, _DEFINITIONS):
                parts.append(parent.name)
            parent = self._module.parent(parent)
        return ".".join(reversed(parts))

    def _from_star_import(self, name: str) -> str | None:
        for origin in self._module.star_imports():
            if exported_by(origin, name):
                return canonical(f"{origin}.{name}")
            found = self._module.project_export(origin, name)
            if found is not None:
                return found
        return None
