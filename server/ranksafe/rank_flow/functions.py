"""Functions, classes and module-level values of the project, in this file and in others, and what they mention."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ranksafe.rank_flow import sources
from ranksafe.rank_flow.operations import properties, words
from ranksafe.rank_flow.syntax import last_segment, parameter_names
from ranksafe.rank_flow.values import NOTHING_KNOWN, Constant, Object, Value
from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import FUNCTIONS, nodes_in

_LIMIT = 40
_SAME_NAME = 4
_SMALL = 12
_TINY = 2
_RANK_TEXT = frozenset(
    {
        "get_rank",
        "RANK",
        "LOCAL_RANK",
        "get_world_size",
        "WORLD_SIZE",
        "is_initialized",
        "process_index",
    }
)
_MODELS = frozenset(
    {"DistributedDataParallel", "DDP", "FSDP", "FullyShardedDataParallel", "fully_shard", "prepare", "Accelerator"}
    | {"DataLoader", "DistributedSampler", "monotonic", "perf_counter", "time"}
)  # fmt: skip


class Functions:
    """Finds what calls run. One for each file that is analysed; answers hold as long as its text does."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._concerns: dict[int, bool] = {}
        self._performs: dict[int, bool] = {}

    # -- resolving

    def named(self, module: Module, function: ast.expr) -> Object | None:
        """The function or class of the project that an expression names."""
        if isinstance(function, ast.Name):
            scope, bindings = module.names.bindings(function)
            if scope is not None and len(bindings) == 1:
                found = self._definition(module, bindings[0])
                if found is not None:
                    return found
        name = module.qualified_name(function)
        if name is None or name.startswith("builtins."):
            return None
        return self._in_project(module, name)

    def _definition(self, module: Module, node: ast.AST) -> Object | None:
        if isinstance(node, FUNCTIONS):
            module.read_unit_of(node)
            return Object("function", node=node, module=module)
        if isinstance(node, ast.ClassDef):
            return Object("class", type=module.class_name(node), node=node, module=module)
        return None

    def _in_project(self, module: Module, name: str) -> Object | None:
        found = module.project_definition(name)
        if found is None:
            return None
        other, node = found
        return self._definition(other, node)

    def method(self, thing: Object, name: str) -> Object | None:
        """A method of an object of the project, from its class or the classes it derives from."""
        if not isinstance(thing.node, ast.ClassDef) or thing.module is None:
            return None
        pending: list[tuple[Module, ast.ClassDef]] = [(thing.module, thing.node)]
        for _ in range(8):
            if not pending:
                return None
            module, cls = pending.pop(0)
            found = module.method(cls, name)
            if found is not None:
                return Object("function", node=found, module=module)
            for base in cls.bases:
                definition = self.named(module, base)
                if definition is not None and isinstance(definition.node, ast.ClassDef):
                    assert definition.module is not None
                    pending.append((definition.module, definition.node))
        return None

    def class_attribute(self, thing: Object, name: str) -> Value | None:
        """What a class body binds to a name: nothing is known of it but that it is there."""
        if not isinstance(thing.node, ast.ClassDef) or thing.module is None:
            return None
        return NOTHING_KNOWN if thing.module.binds_in_class(thing.node, name) else None

    def library_constant(self, name: str) -> Value | None:
        """A constant of a library that matters here."""
        if name.endswith(".group.WORLD"):
            return Constant(None)
        return None

    # -- what is worth following

    def concerns(self, function: Object) -> bool:
        """Whether a function, or one that it calls, performs a collective or looks at the rank."""
        return self._ask(function, self._concerns, True)

    def worth_a_look(self, function: Object) -> bool:
        """Whether ranks may part in the function itself: it performs collectives, or branches on the rank."""
        if self.performs(function):
            return True
        node = function.node
        if node is None or function.module is None:
            return False
        return self._branches(function) and self.concerns(function)

    def _branches(self, function: Object) -> bool:
        """Whether the function, or one that it calls, has a branch."""
        module, node = function.module, function.node
        assert module is not None
        assert node is not None
        found = mentioned_in(module, node)
        if found.branches:
            return True
        return any(
            item.node is not None
            and item.module is not None
            and mentioned_in(item.module, item.node).branches
            for callee in found.callees[:_LIMIT]
            for item in self._callees(module, callee)
        )

    def worth_following(self, function: Object) -> bool:
        """Whether a call of the function can change what ranks do: it performs collectives, or is a small helper that
        looks at the rank."""
        if self.performs(function):
            return True
        return self.is_small(function) and self.concerns(function)

    def is_tiny(self, function: Object) -> bool:
        """Whether following a call of the function costs hardly more than not following it."""
        body = getattr(function.node, "body", None)
        return not isinstance(body, list) or len(body) <= _TINY

    def is_small(self, function: Object) -> bool:
        """Whether following a call of the function costs little."""
        body = getattr(function.node, "body", None)
        return not isinstance(body, list) or len(body) <= _SMALL

    def performs(self, function: Object) -> bool:
        """Whether a function, or one that it calls, may perform a collective."""
        return self._ask(function, self._performs, False)

    def _ask(self, function: Object, known: dict[int, bool], rank: bool) -> bool:
        """Whether a function, or one that it calls, is one of those that are looked for.

        Without recursion: files call through more functions than Python lets ours.
        """
        asked: list[tuple[int, Iterator[Object]]] = []
        answer = self._begin(function, known, rank, asked)
        while asked:
            key, callees = asked[-1]
            if answer:
                known[key] = True
                asked.pop()
                continue
            callee = next(callees, None)
            if callee is None:
                asked.pop()
                answer = False
            else:
                answer = self._begin(callee, known, rank, asked)
        return bool(answer)

    def _begin(
        self,
        function: Object,
        known: dict[int, bool],
        rank: bool,
        asked: list[tuple[int, Iterator[Object]]],
    ) -> bool | None:
        """The answer for a function where it shows at once; None: its callees are to be asked, too."""
        node, module = function.node, function.module
        if node is None or module is None:
            return False
        key = id(node)
        if key in known:
            return known[key]
        words_ = mentioned_in(module, node)
        known[key] = words_.performs or (rank and words_.looks_at_rank)
        if known[key]:
            return True
        callees = (self._callees(module, callee) for callee in words_.callees[:_LIMIT])
        asked.append((key, chain.from_iterable(callees)))
        return None

    def _callees(self, module: Module, callee: ast.expr) -> list[Object]:
        """The functions that a call may run, as far as its text tells."""
        if isinstance(callee, ast.Attribute):
            return self._methods_called(module, callee)
        if isinstance(callee, ast.Name):
            found = self.named(module, callee)
            if found is not None and found.kind == "class":
                made = Object("object", type=found.type, node=found.node, module=found.module)
                found = self.method(made, "__init__")
            return [] if found is None else [found]
        return []

    def _methods_called(self, module: Module, callee: ast.Attribute) -> list[Object]:
        cls = module.class_of_self(callee.value)
        if cls is not None:
            owner = Object("object", type="", node=cls, module=module)
            found = self.method(owner, callee.attr)
            return self._held_called(module, cls, callee.attr) if found is None else [found]
        if isinstance(callee.value, ast.Name):
            found = self.named(module, callee)
            if found is not None:
                return [found]
        made = self._made(module, callee.value)
        if made is not None:
            found = self.method(made, callee.attr)
            return [] if found is None else [found]
        # Of an object that only running tells: any class of the file may be its own.
        return [
            Object("function", node=method, module=module)
            for method in module.methods_named(callee.attr)[:_SAME_NAME]
        ]

    def _held_called(self, module: Module, cls: ast.ClassDef, attribute: str) -> list[Object]:
        """What calling an object runs that the class keeps in an attribute."""
        found = []
        for store in module.attribute_stores(cls, attribute)[:_SAME_NAME]:
            value = module.assigned_to_attribute(store)
            made = None if value is None else self._made(module, value)
            for name in ("__call__", "forward"):
                method = None if made is None else self.method(made, name)
                if method is not None:
                    found.append(method)
        return found

    def _made(self, module: Module, node: ast.expr) -> Object | None:
        """An object of the project that is constructed where it is named, or in the same function."""
        values = [node]
        if isinstance(node, ast.Name):
            values = module.flow.assigned_values(node)
        for value in values:
            if isinstance(value, ast.Call):
                found = self.named(module, value.func)
                if found is not None and found.kind == "class":
                    return Object("object", type=found.type, node=found.node, module=found.module)
        return None


@dataclass(frozen=True, slots=True)
class Mentioned:
    """What the text of a function mentions."""

    performs: bool
    looks_at_rank: bool
    branches: bool
    callees: list[ast.expr]


def mentioned_in(module: Module, node: ast.AST) -> Mentioned:
    """Read once for each version of the unit that holds the function."""
    wrapping = module.may_wrap_models
    unit = module.unit_of(node)
    if unit is None:
        return _read(_by_kind(node), wrapping)
    kept: dict[tuple[int, bool], Mentioned] = unit.results.setdefault("rank words", {})
    found = kept.get((id(node), wrapping))
    if found is None:
        whole = (
            len(unit.nodes) == 1 and unit.nodes[0] is node and not isinstance(node, ast.ClassDef)
        )
        found = _read(unit.by_kind if whole else _by_kind(node), wrapping)
        kept[id(node), wrapping] = found
    return found


def _by_kind(node: ast.AST) -> dict[type[ast.AST], list[ast.AST]]:
    found: dict[type[ast.AST], list[ast.AST]] = {}
    for item in nodes_in(node):
        found.setdefault(item.__class__, []).append(item)
    return found


def _read(by_kind: Mapping[type[ast.AST], list[Any]], wrapping: bool) -> Mentioned:
    callees = [call.func for call in by_kind.get(ast.Call, ())]
    called = {last_segment(callee) for callee in callees}
    read = {item.attr for item in by_kind.get(ast.Attribute, ())}
    named = {item.id for item in by_kind.get(ast.Name, ())}
    for kind in (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda):
        for function in by_kind.get(kind, ()):
            named.update(parameter_names(function.args))
    texts = {item.value for item in by_kind.get(ast.Constant, ()) if item.value.__class__ is str}
    return Mentioned(
        performs=not called.isdisjoint(words(wrapping))
        or (wrapping and not read.isdisjoint(properties())),
        looks_at_rank=not (called | read | texts).isdisjoint(_RANK_TEXT)
        or not called.isdisjoint(_MODELS)
        or any(map(sources.is_rank_word, read | named)),
        branches=ast.If in by_kind,
        callees=callees,
    )
