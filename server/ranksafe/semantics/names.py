"""What names refer to: bindings, imports, aliases, canonical dotted names."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ranksafe.semantics.control_flow import ControlFlow
from ranksafe.semantics.imports import Imports
from ranksafe.semantics.libraries import canonical, exported_by
from ranksafe.semantics.structure import Function, ModuleStructure
from ranksafe.semantics.walking import FUNCTIONS, Scope

_MAXIMUM_DEPTH = 10
_DEFINITIONS = (*FUNCTIONS, ast.ClassDef)


class Names:
    """Resolves names of one module."""

    def __init__(self, module: ModuleStructure, flow: ControlFlow, imports: Imports) -> None:
        self._module = module
        self._flow = flow
        self._imports = imports

    def bindings(self, use: ast.Name) -> tuple[Scope | None, list[ast.AST]]:
        """See `ModuleStructure.bindings`."""
        return self._module.bindings(use)

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
        return self._imports.canonical(f"{base}.{node.attr}")

    def _qualified_name(self, node: ast.Name, depth: int) -> str | None:
        scope, bindings = self._module.bindings(node)
        if scope is None or not bindings:
            return self._from_star_import(node.id) or f"builtins.{node.id}"
        if len(bindings) > 1 and not all(binding.__class__ is ast.alias for binding in bindings):
            bindings = self._flow.reaching_bindings(node, scope, bindings)
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
                origin = self._imports.absolute_import(statement.module, statement.level)
                return self._imports.canonical(
                    f"{origin}.{binding.name}" if origin else binding.name
                )
            return self._imports.imported_module(
                binding.name if binding.asname else binding.name.split(".")[0]
            )
        if isinstance(binding, _DEFINITIONS):
            return f"{self._imports.name}.{self._definition_path(binding)}"
        if isinstance(binding, ast.Name):
            assigned = module.assigned_value(binding)
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
        for origin in self._imports.star_imports():
            if exported_by(origin, name):
                return canonical(f"{origin}.{name}")
            found = self._imports.star_export(origin, name)
            if found is not None:
                return found
        return None

    def resolve_dotted(self, text: str) -> str | None:
        """Canonical name of dotted text as if it stood at module level (for string annotations)."""
        head, _, rest = text.partition(".")
        bindings = self._module.module_bindings(head)
        if not bindings:
            return None
        base = self.of_binding(bindings[-1])
        if base is None:
            return None
        return self._imports.canonical(f"{base}.{rest}") if rest else base

    def may_stand_for_another(self, name: str) -> bool:
        """Whether a called name may mean something that is called otherwise: a renamed import, an alias, a subclass,
        here or (capitalised, as classes are) in another file of the project."""
        if self._imports.project is not None and name[:1].isupper():
            return True
        return bool(self.original_names(name))

    def original_names(self, name: str) -> frozenset[str]:
        """Last segments of what a module-level name stands for, when that is called otherwise: the original name of
        a renamed import or alias, and the names of a local class's bases."""
        if name not in self._module.units_binding:
            self._module.note("binding", name)
            return frozenset()
        return self._originals(name, 0)

    def _originals(self, name: str, depth: int) -> frozenset[str]:
        found: set[str] = set()
        for binding in self._module.module_bindings(name):
            sources: list[str] = []
            if isinstance(binding, ast.alias) and binding.asname not in (None, binding.name):
                sources = [binding.name.rpartition(".")[2]]
            elif isinstance(binding, ast.Name):
                value = self._module.assigned_value(binding)
                sources = [last] if (last := _last_segment(value)) else []
            elif isinstance(binding, ast.ClassDef):
                sources = [last for base in binding.bases if (last := _last_segment(base))]
            for source in sources:
                if source not in found and depth < 4:
                    found |= {source} | self._originals(source, depth + 1)
        return frozenset(found)

    # -- classes and functions of this file

    def class_name(self, cls: ast.ClassDef) -> str:
        """Canonical name of a class of this file."""
        return self.of_binding(cls) or cls.name

    def class_named(self, name: str | None) -> ast.ClassDef | None:
        """The definition of a class of this file by canonical name (classes inside functions are not found)."""
        prefix = f"{self._imports.name}."
        if name is None or not name.startswith(prefix):
            return None
        parts = name[len(prefix) :].split(".")
        bindings: Iterable[ast.AST] = self._module.module_bindings(parts[0])
        for index in range(len(parts)):
            cls = next((item for item in bindings if isinstance(item, ast.ClassDef)), None)
            if cls is None:
                return None
            if index == len(parts) - 1:
                return cls
            bindings = [
                item
                for item in self._module.body_of(cls)
                if getattr(item, "name", None) == parts[index + 1]
            ]
        return None

    def function_called(self, call: ast.Call) -> Function | None:
        """The function of this file that a call runs, when there is just one it can be."""
        function = call.func
        if isinstance(function, ast.Name):
            scope, bindings = self._module.bindings(function)
            if scope is None or len(bindings) != 1 or not isinstance(bindings[0], FUNCTIONS):
                return None
            return self._opened(bindings[0])
        if isinstance(function, ast.Attribute):
            cls = self._module.class_of_self(function.value)
            if cls is not None:
                method = self._module.method(cls, function.attr)
                return None if method is None else self._opened(method)
        return None

    def _opened(self, function: Function) -> Function:
        self._module.note_unit_of(function)
        return function


def _last_segment(node: ast.expr | None) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    return None
