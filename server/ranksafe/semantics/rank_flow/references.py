"""Functions that a text refers to without calling them by name: handed on, kept in tables, called by Python itself."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.values import Thing
from ranksafe.semantics.walking import FUNCTIONS

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module
    from ranksafe.semantics.rank_flow.functions import Functions

_MOST = 60
_SPECIAL = (
    "__init__",
    "__call__",
    "__enter__",
    "__exit__",
    "__aenter__",
    "__aexit__",
    "__post_init__",
)


def special_methods(functions: Functions, cls: Thing) -> list[Thing]:
    """What constructing an object of a class, calling it or entering it runs."""
    made = Thing("object", type=cls.type, node=cls.node, module=cls.module)
    found = (functions.method(made, name) for name in _SPECIAL)
    return [item for item in found if item is not None]


def inherited(functions: Functions, module: Module, callee: ast.Attribute) -> list[Thing]:
    """What ``super().method()`` runs."""
    method = module.enclosing_function(callee)
    cls = None if method is None else module.parent(method)
    for base in cls.bases if isinstance(cls, ast.ClassDef) else []:
        definition = functions.named(module, base)
        found = None if definition is None else functions.method(definition, callee.attr)
        if found is not None:
            return [found]
    return []


def references_of(
    functions: Functions, module: Module, written: list[ast.expr | str]
) -> Iterator[Thing]:
    """The functions and methods of the project that are handed on."""
    seen: set[str] = set()
    for item in written:
        text = item if isinstance(item, str) else getattr(item, "id", getattr(item, "attr", ""))
        if text in seen or len(seen) > _MOST:
            continue
        seen.add(text)
        if isinstance(item, ast.Name):
            yield from _named(functions, module, item.id)
        elif isinstance(item, (str, ast.Attribute)):
            for method in module.methods_named(text)[:2]:
                yield Thing("function", node=method, module=module)


def _named(functions: Functions, module: Module, name: str) -> Iterator[Thing]:
    for binding in module.module_bindings(name)[:2]:
        if isinstance(binding, FUNCTIONS):
            module.read_unit_of(binding)
            yield Thing("function", node=binding, module=module)
        elif isinstance(binding, ast.ClassDef):
            yield from special_methods(
                functions,
                Thing("class", type=module.class_name(binding), node=binding, module=module),
            )
        elif isinstance(binding, ast.Name):
            yield from _kept(functions, module, module.flow.assigned_value(binding))


def _kept(functions: Functions, module: Module, value: ast.expr | None) -> Iterator[Thing]:
    """The functions in a table at the top of a file, and what its objects do when they are called."""
    kept: Iterable[ast.expr] = ()
    if isinstance(value, ast.Dict):
        kept = value.values
    elif isinstance(value, (ast.List, ast.Tuple)):
        kept = value.elts
    elif isinstance(value, ast.Call):
        kept = (value.func, *value.args)
    for item in kept:
        if isinstance(item, ast.Name):
            found = functions.named(module, item)
            if found is not None and found.kind == "class":
                yield from special_methods(functions, found)
            elif found is not None:
                yield found
