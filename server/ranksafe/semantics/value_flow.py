"""Where values come from: through names, attributes, conditional expressions, items and functions' returns.

What is not understood makes an answer incomplete.
"""

from __future__ import annotations

import ast

from ranksafe.semantics.control_flow import ControlFlow
from ranksafe.semantics.dictionaries import Dictionaries
from ranksafe.semantics.imports import Imports
from ranksafe.semantics.names import Names
from ranksafe.semantics.structure import ModuleStructure
from ranksafe.semantics.values import NOTHING_KNOWN, Value, Values, merged, with_guards

_MAXIMUM_DEPTH = 7


class ValueFlow:
    """Values of one module's expressions."""

    def __init__(
        self, module: ModuleStructure, flow: ControlFlow, names: Names, imports: Imports
    ) -> None:
        self._module = module
        self._flow = flow
        self._names = names
        self._imports = imports
        self.dictionaries = Dictionaries(module, flow, names, self.values)

    def values(self, node: ast.expr, depth: int = 0) -> Values:
        """See `Module.values`."""
        if depth > _MAXIMUM_DEPTH:
            return NOTHING_KNOWN
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
            answer: Values = self._module.memoized("values", node, depth, self._compute)
            return answer
        return self._compute(node, depth)

    def _compute(self, node: ast.expr, depth: int) -> Values:
        module = self._module
        if isinstance(node, ast.Name):
            return self._of_name(node, depth)
        if isinstance(node, ast.IfExp):
            return merged(
                [
                    with_guards(
                        self.values(node.body, depth + 1), self._flow.guard(node.test, True)
                    ),
                    with_guards(
                        self.values(node.orelse, depth + 1),
                        self._flow.guard(node.test, False),
                    ),
                ]
            )
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            return merged([self.values(item, depth + 1) for item in node.values])
        if isinstance(node, ast.NamedExpr):
            return self.values(node.value, depth + 1)
        if isinstance(node, ast.Attribute):
            return self._of_attribute(node, depth)
        if isinstance(node, ast.Subscript):
            return self._of_item(node, depth)
        if isinstance(node, ast.Call):
            return self._of_call(node, depth)
        return Values((Value(node, (), module),), True)

    def _of_name(self, node: ast.Name, depth: int) -> Values:
        module = self._module
        scope, bindings = module.bindings(node)
        if scope is None or not bindings:
            return NOTHING_KNOWN
        parts = []
        for binding, guards in self._flow.reaching(node, scope, bindings):
            parts.append(with_guards(self._of_binding(binding, depth), *guards))
        return merged(parts) if parts else NOTHING_KNOWN

    def _of_binding(self, binding: ast.AST, depth: int) -> Values:
        if isinstance(binding, ast.Name):
            assigned = self._module.assigned_value(binding)
            if assigned is not None:
                return self.values(assigned, depth + 1)
            return self._of_unpacked(binding, depth)
        if isinstance(binding, ast.arg):
            default = default_of(binding, self._module.parent(binding))
            if default is not None:
                return Values(self.values(default, depth + 1).known, False)
        if isinstance(binding, ast.alias):
            constant = self._imports.constant(binding)
            if constant is not None:
                return Values((Value(constant, (), self._module),), True)
        return NOTHING_KNOWN

    def _of_unpacked(self, target: ast.Name, depth: int) -> Values:
        """``model, tokenizer = load()`` with ``return model, tokenizer`` in the function."""
        unpacked = self._module.parent(target)
        statement = self._module.parent(unpacked) if unpacked is not None else None
        if not isinstance(unpacked, (ast.Tuple, ast.List)) or not isinstance(statement, ast.Assign):
            return NOTHING_KNOWN
        index = next(i for i, item in enumerate(unpacked.elts) if item is target)
        parts = []
        for value in self.values(statement.value, depth + 1).known:
            elements = value.node.elts if isinstance(value.node, (ast.Tuple, ast.List)) else []
            if len(elements) != len(unpacked.elts) or isinstance(elements[index], ast.Starred):
                return NOTHING_KNOWN
            parts.append(with_guards(self.values(elements[index], depth + 1), *value.guards))
        return merged(parts) if parts else NOTHING_KNOWN

    def _of_attribute(self, node: ast.Attribute, depth: int) -> Values:
        module = self._module
        cls = module.class_of_self(node.value)
        if cls is not None:
            stores = module.attribute_stores(cls, node.attr)
            parts = []
            for store in stores:
                assigned = module.assigned_to_attribute(store)
                guards = self._flow.around(store)
                if assigned is None:
                    parts.append(NOTHING_KNOWN)
                else:
                    parts.append(with_guards(self.values(assigned, depth + 1), *guards))
            return merged(parts) if parts else NOTHING_KNOWN
        default = self._argparse_default(node)
        if default is not None:
            return Values(self.values(default, depth + 1).known, False)
        return NOTHING_KNOWN

    def _argparse_default(self, node: ast.Attribute) -> ast.expr | None:
        """The default of ``--name`` for ``args.name`` with ``args = parser.parse_args()``."""
        options_added = self._module.calls_written("add_argument")
        if not options_added or not isinstance(node.value, ast.Name):
            return None
        parsed = any(
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr in ("parse_args", "parse_known_args")
            for value in self._flow.assigned_values(node.value)
        )
        if not parsed:
            return None
        for call in options_added:
            words = [item.value for item in call.args if isinstance(item, ast.Constant)]
            options = {str(word).lstrip("-").replace("-", "_") for word in words}
            if node.attr in options:
                return next((item.value for item in call.keywords if item.arg == "default"), None)
        return None

    def _of_item(self, node: ast.Subscript, depth: int) -> Values:
        if not isinstance(node.slice, ast.Constant):
            return NOTHING_KNOWN
        key = node.slice.value
        containers = self.values(node.value, depth + 1)
        parts = []
        for value in containers.known:
            if not isinstance(key, str):
                if isinstance(value.node, (ast.List, ast.Tuple)) and isinstance(key, int):
                    if 0 <= key < len(value.node.elts):
                        parts.append(self.values(value.node.elts[key], depth + 1))
                        continue
                return NOTHING_KNOWN
            item = self.dictionaries.item(value.node, key, depth)
            if item is None:
                return NOTHING_KNOWN
            parts.append(with_guards(item, *value.guards))
        found = merged(parts) if parts else NOTHING_KNOWN
        return Values(found.known, found.complete and containers.complete)

    def _of_call(self, node: ast.Call, depth: int) -> Values:
        function = self._names.function_called(node)
        if function is None:
            return Values((Value(node, (), self._module),), True)
        returns = [item for item in self._module.returns_of(function) if item.value is not None]
        if not returns or depth > 3:
            return Values((Value(node, (), self._module),), True)
        parts = []
        for item in returns:
            guards = self._flow.around(item)
            assert item.value is not None
            parts.append(with_guards(self.values(item.value, depth + 1), *guards))
        return merged(parts)


def default_of(argument: ast.arg, function: ast.AST | None) -> ast.expr | None:
    """The default of a parameter; None where there is none."""
    arguments = getattr(function, "args", None)
    if not isinstance(arguments, ast.arguments):
        return None
    positional = [*arguments.posonlyargs, *arguments.args]
    for index, item in enumerate(positional):
        if item is argument:
            offset = index - (len(positional) - len(arguments.defaults))
            return arguments.defaults[offset] if offset >= 0 else None
    for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if item is argument:
            return default
    return None
