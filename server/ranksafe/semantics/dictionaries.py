"""Entries of keyword dictionaries, and the arguments of calls that are given through them."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ranksafe.semantics.control_flow import ControlFlow
from ranksafe.semantics.names import Names
from ranksafe.semantics.structure import ModuleStructure
from ranksafe.semantics.values import NOTHING_KNOWN, Values, merged, with_guards

_MAXIMUM_DEPTH = 7


class Dictionaries:
    """Dictionaries and arguments of one module; ``values``: what an expression may be, asked at a depth."""

    def __init__(
        self,
        module: ModuleStructure,
        flow: ControlFlow,
        names: Names,
        values: Callable[[ast.expr, int], Values],
    ) -> None:
        self._module = module
        self._flow = flow
        self._names = names
        self._values = values

    def item(self, node: ast.expr, key: str, depth: int = 0) -> Values | None:
        """Values under a string key of a dictionary display, ``dict(...)`` call or keyword-dictionary expression;
        None: the key is certainly not there."""
        if isinstance(node, ast.Dict):
            return self._in_display(node, key, depth)
        if isinstance(node, ast.Call) and self._names.qualified(node.func) == "builtins.dict":
            return self._in_call(node, key, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self.entry(node.right, key, depth + 1) or self.entry(node.left, key, depth + 1)
        return NOTHING_KNOWN

    def _in_display(self, node: ast.Dict, key: str, depth: int) -> Values | None:
        result: Values | None = None
        complete = True
        for name, value in zip(node.keys, node.values, strict=True):
            if name is None:
                inner = self.entry(value, key, depth + 1)
                if inner is not None:
                    if not inner.known and not inner.complete:
                        complete = False
                    else:
                        result = inner
            elif isinstance(name, ast.Constant):
                if name.value == key:
                    result = self._values(value, depth + 1)
            else:
                complete = False
        return NOTHING_KNOWN if result is None and not complete else result

    def _in_call(self, node: ast.Call, key: str, depth: int) -> Values | None:
        for keyword in node.keywords:
            if keyword.arg == key:
                return self._values(keyword.value, depth + 1)
        merged = [item.value for item in node.keywords if item.arg is None] + list(node.args)
        for source in merged:
            found = self.entry(source, key, depth + 1)
            if found is not None:
                return found
        return None

    def entry(self, node: ast.expr, key: str, depth: int = 0) -> Values | None:
        """Values under a string key of whatever dictionary the expression may be, changes made to it in between
        included; None: certainly not there."""
        if depth > _MAXIMUM_DEPTH:
            return NOTHING_KNOWN
        changed = self._changes(node, key, depth)
        if changed is not None and not (changed.known and not changed.complete):
            return changed
        dictionaries = self._values(node, depth + 1)
        if not dictionaries.known:
            return changed or NOTHING_KNOWN
        parts: list[Values] = [changed] if changed is not None else []
        for value in dictionaries.known:
            found = self.item(value.node, key, depth + 1)
            if found is not None:
                parts.append(with_guards(found, *value.guards))
        if not parts:
            return None if dictionaries.complete else NOTHING_KNOWN
        both = merged(parts)
        return Values(both.known, both.complete and dictionaries.complete)

    def _changes(self, node: ast.expr, key: str, depth: int) -> Values | None:
        """What ``d[key] = v``, ``d.update(key=v)``, ``d.pop(key)`` before the use do to an entry; None: nothing.
        Incomplete but known values: the change is conditional."""
        if not isinstance(node, ast.Name):
            return None
        module = self._module
        before = module.order_of(node)
        result: Values | None = None
        for use in module.loads_of_same_name(node):
            if module.order_of(use) >= before:
                continue
            parent = module.parent(use)
            new: Values | None = None
            if isinstance(parent, ast.Subscript) and parent.value is use:
                if isinstance(parent.slice, ast.Constant) and parent.slice.value == key:
                    statement = module.parent(parent)
                    if isinstance(parent.ctx, ast.Store) and isinstance(statement, ast.Assign):
                        new = self._values(statement.value, depth + 1)
                    elif isinstance(parent.ctx, ast.Del):
                        new = NOTHING_KNOWN
            elif isinstance(parent, ast.Attribute):
                call = module.parent(parent)
                if isinstance(call, ast.Call) and call.func is parent:
                    new = self._method_change(call, parent.attr, key, depth)
            if new is not None:
                guards = self._flow.around(use)
                result = with_guards(new, *guards)
                if guards:
                    result = Values(result.known, False)
        return result

    def _method_change(self, call: ast.Call, method: str, key: str, depth: int) -> Values | None:
        if method in ("pop", "setdefault") and call.args:
            first = call.args[0]
            if isinstance(first, ast.Constant) and first.value == key:
                return NOTHING_KNOWN
            return None
        if method == "clear":
            return NOTHING_KNOWN
        if method == "update":
            for keyword in call.keywords:
                if keyword.arg == key:
                    return self._values(keyword.value, depth + 1)
            for argument in call.args:
                found = self.entry(argument, key, depth + 1)
                if found is not None:
                    return found
        return None

    def argument(self, call: ast.Call, name: str, position: int | None) -> Values | None:
        """See `Module.argument`."""
        for keyword in call.keywords:
            if keyword.arg == name:
                return self._values(keyword.value, 0)
        if position is not None and position < len(call.args):
            before = call.args[: position + 1]
            if not any(isinstance(item, ast.Starred) for item in before):
                return self._values(call.args[position], 0)
            return NOTHING_KNOWN
        for keyword in call.keywords:
            if keyword.arg is None:
                found = self.entry(keyword.value, name)
                if found is not None:
                    return found
        return None

    def argument_node(self, call: ast.Call, name: str, position: int | None) -> ast.expr | None:
        """See `Module.argument_node`."""
        for keyword in call.keywords:
            if keyword.arg == name:
                return keyword.value
        if position is not None and position < len(call.args):
            argument = call.args[position]
            return None if isinstance(argument, ast.Starred) else argument
        for keyword in call.keywords:
            if keyword.arg is None:
                found = self.entry(keyword.value, name)
                if found is not None and found.known:
                    return found.known[0].node
        return None
