"""One class that nn.DataParallel copies: what runs in a copy, and what a copy shares with the original.

``Module._replicate_for_data_parallel`` (torch 2.13.0, torch/nn/modules/module.py) copies ``__dict__`` shallowly and
gives the copy its own parameters, buffers and sub-modules; everything else in it is the original's object.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.replicas import MODULE, is_replicated

Function = ast.FunctionDef | ast.AsyncFunctionDef

_Node = TypeVar("_Node", bound=ast.AST)

_PARAMETERS = ("torch.nn.Parameter", "torch.nn.parameter.Parameter")
_REGISTRATIONS = frozenset(
    {"register_buffer", "register_parameter", "add_module", "register_module"}
)
_KINDS = frozenset({ast.Attribute, ast.Call, ast.Constant, ast.Name, ast.Subscript})
_LOOKUPS = frozenset(
    {
        "parameters",
        "named_parameters",
        "buffers",
        "modules",
        "named_modules",
        "children",
        "state_dict",
    }
)


@dataclass(frozen=True, slots=True)
class Store:
    """``self.attribute = value`` (or ``+=``, a loop's target...) somewhere in the class."""

    attribute: str
    target: ast.Attribute
    value: ast.expr | None
    """None where it is no plain assignment."""
    method: Function


def replicated_class(
    module: Module, node: ast.AST, launch: LaunchContext
) -> ReplicatedClass | None:
    """The class as a copy sees it, None where nothing copies it or it has no forward."""
    if not isinstance(node, ast.ClassDef) or not is_replicated(module, node, launch):
        return None
    view = class_view(module, node)
    return view if view.in_forward else None


def class_view(module: Module, cls: ast.ClassDef) -> ReplicatedClass:
    """The class as all rules see it: read once for each version of the text, whoever asks first."""

    def read(node: ast.AST, depth: int) -> ReplicatedClass:  # noqa: ARG001
        assert isinstance(node, ast.ClassDef)
        return ReplicatedClass(module, node)

    view: ReplicatedClass = module.memoized("replicated-class", cls, 0, read)
    return view


class ReplicatedClass:
    """A module class of this file. Everything is read at once, so that what it read counts for all who use it."""

    def __init__(self, module: Module, cls: ast.ClassDef) -> None:
        self.module = module
        self.cls = cls
        self.methods: dict[str, Function] = {item.name: item for item in module.methods(cls)}
        self._nodes = {name: _by_kind(module, method) for name, method in self.methods.items()}
        self._by_method = [
            (
                method,
                [item for item in self.nodes(ast.Attribute, method) if self.self_attribute(item)],
            )
            for method in self.methods.values()
        ]
        self.stores = [
            Store(item.attr, item, module.assigned_to_attribute(item), method)
            for method, attributes in self._by_method
            for item in attributes
            if isinstance(item.ctx, ast.Store)
        ]
        """All assignments to ``self.x`` in the class's methods."""
        self.in_forward = self._methods_in_forward() if "forward" in self.methods else []
        """``forward`` and the methods it reaches, through tables of methods and ``getattr(self, name)`` as well."""
        self.buffers = self._registered_names() if self.in_forward else frozenset()
        """Attributes registered by name: buffers, and parameters and modules registered so."""
        self.copied = self._copied_names() if self.in_forward else frozenset()
        """Attributes that every replica has a copy of: parameters, buffers, sub-modules."""

    def nodes(self, kind: type[_Node], method: Function) -> list[_Node]:
        """All nodes of a kind in one of the class's methods, in source order."""
        return self._nodes[method.name].get(kind, [])  # type: ignore[return-value]

    def self_attribute(self, node: ast.AST | None) -> str | None:
        """The name in ``self.name``, None for any other expression."""
        if isinstance(node, ast.Attribute) and self.module.class_of_self(node.value) is self.cls:
            return node.attr
        return None

    def attributes(self, inside: ast.AST) -> Iterator[ast.Attribute]:
        """``self.x`` in source order, read or written."""
        for node in self.module.nodes(ast.Attribute, inside=inside):
            if self.self_attribute(node) is not None and isinstance(node, ast.Attribute):
                yield node

    def _methods_in_forward(self) -> list[Function]:
        found = self._reached_from("forward")
        while True:
            more = [
                item
                for name in sorted(self._named_indirectly(found))
                for item in self._reached_from(name)
                if item not in found
            ]
            if not more:
                return found
            found += dict.fromkeys(more)

    def _reached_from(self, start: str) -> list[Function]:
        """A method and those that it calls or reads through ``self``, directly or through each other."""
        found: dict[str, Function] = {}
        pending = [start]
        while pending:
            name = pending.pop()
            if name in self.methods and name not in found:
                found[name] = self.methods[name]
                pending += [
                    item.attr
                    for item in self.nodes(ast.Attribute, self.methods[name])
                    if self.self_attribute(item) is not None
                ]
        return list(found.values())

    def _named_indirectly(self, reached: list[Function]) -> set[str]:
        names: set[str] = set()
        read = {
            item.attr
            for method, attributes in self._by_method
            if method in reached
            for item in attributes
            if isinstance(item.ctx, ast.Load)
        }
        for store in self.stores:
            if store.attribute in read and store.value is not None:
                names |= {
                    item.attr
                    for item in self.attributes(store.value)
                    if not self._is_called_here(item)
                }
        calls = (call for method in reached for call in self.nodes(ast.Call, method))
        if any(self._looks_itself_up(call) for call in calls):
            names |= {
                item.value
                for method in self.methods.values()
                for item in self.nodes(ast.Constant, method)
                if isinstance(item.value, str)
            }
        return names & self.methods.keys()

    def _is_called_here(self, attribute: ast.Attribute) -> bool:
        """Whether a method runs where it is named, and what is kept is its result."""
        call = self.module.parent(attribute)
        return isinstance(call, ast.Call) and call.func is attribute

    def _looks_itself_up(self, call: ast.Call) -> bool:
        """``getattr(self, name)``"""
        return (
            isinstance(call.func, ast.Name)
            and call.func.id == "getattr"
            and bool(call.args)
            and self.module.class_of_self(call.args[0]) is self.cls
        )

    def stored_before_forward(self) -> Iterator[Store]:
        """Plain assignments in methods that forward does not reach, of attributes that it reads and does not write."""
        written = {store.attribute for store in self.stores if store.method in self.in_forward}
        for store in self.stores:
            if store.value is None or store.method in self.in_forward:
                continue
            if store.attribute not in written and self.loads_in_forward(store.attribute):
                yield store

    def stores_of(self, attribute: str) -> list[Store]:
        """All assignments to one attribute."""
        return [store for store in self.stores if store.attribute == attribute]

    def loads(self, attribute: str) -> list[tuple[Function, ast.Attribute]]:
        """Reads of ``self.attribute`` with the method they stand in."""
        return [
            (method, item)
            for method, attributes in self._by_method
            for item in attributes
            if item.attr == attribute and isinstance(item.ctx, ast.Load)
        ]

    def loads_in_forward(self, attribute: str) -> list[tuple[Function, ast.Attribute]]:
        """Reads of ``self.attribute`` that run in a replica."""
        return [item for item in self.loads(attribute) if item[0] in self.in_forward]

    def _registered_names(self) -> frozenset[str]:
        return frozenset(
            call.args[0].value
            for cls in self._lineage()
            for call in self.module.nodes(ast.Call, inside=cls)
            if isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr in _REGISTRATIONS
            and call.args
            and isinstance(call.args[0], ast.Constant)
            and isinstance(call.args[0].value, str)
        )

    def _copied_names(self) -> frozenset[str]:
        assigned = {
            item.attr
            for cls in self._lineage()
            for item in self.module.nodes(ast.Attribute, inside=cls)
            if isinstance(item, ast.Attribute)
            and isinstance(item.ctx, ast.Store)
            and self.module.class_of_self(item.value) is cls
            and self._is_copied_value(item.attr, self.module.assigned_to_attribute(item))
        }
        return frozenset(assigned) | self.buffers

    def _lineage(self) -> list[ast.ClassDef]:
        """The class and its bases in this file."""
        found: list[ast.ClassDef] = []
        pending: list[ast.ClassDef | None] = [self.cls]
        while pending:
            current = pending.pop()
            if current is not None and current not in found:
                found.append(current)
                pending += [
                    self.module.class_named(self.module.qualified_name(base))
                    for base in current.bases
                ]
        return found

    def _is_copied_value(self, attribute: str, value: ast.expr | None) -> bool:
        if not isinstance(value, ast.Call):
            return False
        name = self.module.type_of(value) or self.module.qualified_name(value.func)
        if name in _PARAMETERS or self.module.is_subclass(name, MODULE):
            return True
        if name is not None and name.startswith("torch.nn."):
            return name.rpartition(".")[2][:1].isupper()
        if name is not None and name.startswith(("builtins.", "torch.", "functools.")):
            return False
        return self._is_called(attribute)

    def _is_called(self, attribute: str) -> bool:
        """What an unknown function returned is taken for a module when it is called like one."""
        return any(
            isinstance(call := self.module.parent(load), ast.Call) and call.func is load
            for _, load in self.loads(attribute)
        )

    def is_tied(self, node: ast.AST, seen: frozenset[str] = frozenset()) -> bool:
        """Whether code that has captured this object works on what belongs to one replica: it uses a parameter, a
        buffer or a sub-module, writes an attribute, or hands the object itself on."""
        for name in self.module.nodes(ast.Name, inside=node):
            if self.module.class_of_self(name) is not self.cls:
                continue
            attribute = self.module.parent(name)
            if not isinstance(attribute, ast.Attribute):
                return True
            if isinstance(attribute.ctx, ast.Store) or attribute.attr in self.copied | _LOOKUPS:
                return True
            method = self.methods.get(attribute.attr)
            if method is not None and method.name not in seen:
                if self.is_tied(method, seen | {method.name}):
                    return True
        return False


def _by_kind(module: Module, method: Function) -> dict[type[ast.AST], list[ast.AST]]:
    """The nodes that rules about replicas ask for, in source order."""
    found: dict[type[ast.AST], list[ast.AST]] = {}
    for node in ast.walk(method):
        if node.__class__ in _KINDS:
            found.setdefault(node.__class__, []).append(node)
    for nodes in found.values():
        nodes.sort(key=module.order_of)
    return found
