"""Which function a call runs, in this file or in another one of the project, and who calls a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from ranksafe.semantics.module import Module
from ranksafe.semantics.structure import is_method

from ranksafe_rules._shared.trails.holder import Function

_MAXIMUM_BASES = 4
_MAXIMUM_DEPTH = 3
MOST_FILES = 6
"""Of those that may call a function, they are all read."""


@dataclass(frozen=True, slots=True)
class Called:
    """A function that a call runs."""

    module: Module
    function: Function
    skipped: int
    """Parameters that the call does not write: 1 for ``self``."""

    def parameter(self, given: int | str) -> ast.arg | None:
        """The parameter that takes the argument at a position, or with a name."""
        arguments = self.function.args
        positional = [*arguments.posonlyargs, *arguments.args]
        if isinstance(given, int):
            index = given + self.skipped
            return positional[index] if index < len(positional) else None
        named = (*positional, *arguments.kwonlyargs)
        return next((item for item in named if item.arg == given), None)


def called(module: Module, call: ast.Call, depth: int = _MAXIMUM_DEPTH) -> Called | None:
    """The function that a call runs; None when it is not known or cannot be read.

    A function, a method of ``self`` or of an object whose class is known, or a class's ``__init__``.
    """
    function = module.function_called(call)
    if function is not None:
        return Called(module, function, _skipped(module, function, call))
    name = module.qualified_name(call.func)
    if name is not None:
        return _named(module, name)
    if not isinstance(call.func, ast.Attribute):
        return None
    receiver = class_of(module, call.func.value, depth)
    return None if receiver is None else _method(module, receiver, call.func.attr)


def class_of(module: Module, node: ast.expr, depth: int = _MAXIMUM_DEPTH) -> str | None:
    """The canonical class of an object, also where a function of another file made it; None when it is not known."""
    known = module.type_of(node)
    if known is not None or depth == 0:
        return known
    found = set()
    for value in module.values(node).known:
        call = value.node
        function = called(module, call, depth - 1) if isinstance(call, ast.Call) else None
        if function is not None:
            for item in function.module.returns_of(function.function):
                if item.value is not None:
                    found.add(class_of(function.module, item.value, depth - 1))
    found.discard(None)
    return found.pop() if len(found) == 1 else None


def _skipped(module: Module, function: Function, call: ast.Call) -> int:
    owned = isinstance(module.parent(function), ast.ClassDef) and is_method(function)
    return 1 if owned and isinstance(call.func, ast.Attribute) else 0


def _named(module: Module, name: str) -> Called | None:
    cls = module.class_named(name)
    if cls is not None:
        return _own_method(module, cls, "__init__")
    found = module.project_definition(name)
    if found is None:
        return None
    other, node = found
    if isinstance(node, ast.ClassDef):
        return _own_method(other, node, "__init__")
    return Called(other, node, 0)


def _method(module: Module, receiver: str, name: str) -> Called | None:
    cls = module.class_named(receiver)
    if cls is not None:
        return _own_method(module, cls, name)
    found = module.project_definition(receiver)
    if found is None or not isinstance(found[1], ast.ClassDef):
        return None
    return _own_method(found[0], found[1], name)


def _own_method(module: Module, cls: ast.ClassDef, name: str) -> Called | None:
    """A method of a class or of its first base that has it, in whatever file of the project."""
    for _ in range(_MAXIMUM_BASES):
        method = module.method(cls, name)
        if method is not None:
            return Called(module, method, 1 if is_method(method) else 0)
        found = next((known for base in cls.bases if (known := _class(module, base))), None)
        if found is None:
            return None
        module, cls = found
    return None


def _class(module: Module, base: ast.expr) -> tuple[Module, ast.ClassDef] | None:
    name = module.qualified_name(base)
    cls = module.class_named(name)
    if cls is not None:
        return module, cls
    found = None if name is None else module.project_definition(name)
    if found is None or not isinstance(found[1], ast.ClassDef):
        return None
    return found[0], found[1]


def callers(
    module: Module, function: Function, *, most: int | None = None
) -> Iterator[tuple[Module, ast.Call]]:
    """The calls in the function's own file, and in those that import it, that run it, with their file.

    ``most``: none of other files where more than so many may call it.
    """
    name = function.name
    owner = module.parent(function)
    if name == "__init__" and isinstance(owner, ast.ClassDef):
        name = owner.name
    is_imported = isinstance(owner, ast.Module) or name != function.name
    for user in chain((module,), module.each_user_saying(name, most=most)):
        # An import may give another name to what it brings, not to a method.
        named = user.calls(f"{module.name}.{name}") if is_imported else user.calls_written(name)
        yield from ((user, call) for call in named if _runs(user, call, function))


def callers_elsewhere(module: Module, function: Function) -> Iterator[tuple[Module, ast.Call]]:
    """The calls of a function, not a method, in the files that import this one; none where many files may call it:
    reading them costs more than what is learned from one of them."""
    if isinstance(module.parent(function), ast.Module):
        for user in module.each_user_saying(function.name, most=MOST_FILES):
            for call in user.calls(f"{module.name}.{function.name}"):
                if _runs(user, call, function):
                    yield user, call


def _runs(user: Module, call: ast.Call, function: Function) -> bool:
    user.read_unit_of(call)
    found = called(user, call)
    return found is not None and found.function is function


def is_property(function: Function) -> bool:
    """Whether a method is read like an attribute."""
    return any(
        (item.attr if isinstance(item, ast.Attribute) else getattr(item, "id", ""))
        in ("property", "cached_property")
        for item in function.decorator_list
    )
