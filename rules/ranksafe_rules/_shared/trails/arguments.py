"""What becomes of an object that is an argument of a call."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from ranksafe.semantics.module import Module
from ranksafe.semantics.units import callee_name

from ranksafe_rules._shared.trails.functions import called
from ranksafe_rules._shared.trails.holder import Entry, Form, Holder, Pass, Trail
from ranksafe_rules._shared.trails.knowledge import (
    CONTAINERS,
    DICTIONARIES,
    HARMLESS,
    LOADERS,
    NUMBERING,
    PAIRING,
    PASSING,
    STORING_METHODS,
    WRAPPERS,
)
from ranksafe_rules._shared.trails.variables import reads_of_parameter


def handed_over(holder: Holder, call: ast.Call, given: int | str, trail: Trail) -> Iterator[Holder]:
    """The object after a call that takes it as the argument at a position, or with a name."""
    module = holder.module
    name = module.qualified_name(call.func)
    last = callee_name(call) or ""
    if name is not None and module.is_subclass(name, *LOADERS):
        yield from _loader(holder, call, trail)
    elif (cls := _loader_being_made(module, call)) is not None:
        yield from _made_loaders(holder, cls, trail)
    elif name in WRAPPERS or (name in CONTAINERS and holder.slots):
        yield holder.at(call)
    elif name in DICTIONARIES:
        yield holder.within(call, given if isinstance(given, str) else None)
    elif (function := called(module, call)) is not None:
        parameter = function.parameter(given)
        if parameter is None:
            trail.unknown.append(holder)
            return
        entries = (*holder.entries, Entry(module, call, function.function))
        entered = replace(holder, module=function.module, entries=entries)
        for read in reads_of_parameter(function.module, function.function, parameter):
            yield entered.at(read)
    elif last in PASSING:
        yield from _passed_on(holder, call, given, last, trail)
    elif last not in HARMLESS and last not in STORING_METHODS:
        trail.unknown.append(holder)


def _loader(holder: Holder, call: ast.Call, trail: Trail) -> Iterator[Holder]:
    if holder.form is Form.PART and not holder.slots:
        loader = replace(holder, node=call, form=Form.LOADER)
        trail.loaders.append(loader)
        yield loader


def _loader_being_made(module: Module, call: ast.Call) -> ast.ClassDef | None:
    """The class of a loader whose base is set up by a call: ``super().__init__(dataset, sampler=sampler)``."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr != "__init__":
        return None
    cls = module.enclosing_class(call)
    if cls is None or not module.is_subclass(module.class_name(cls), *LOADERS):
        return None
    receiver = function.value
    is_super = isinstance(receiver, ast.Call) and callee_name(receiver) == "super"
    return (
        cls if is_super or module.is_subclass(module.qualified_name(receiver), *LOADERS) else None
    )


def _made_loaders(holder: Holder, cls: ast.ClassDef, trail: Trail) -> Iterator[Holder]:
    """The objects of a class of loaders, wherever they are made."""
    if holder.form is Form.PART and not holder.slots:
        module = holder.module
        name = module.class_name(cls)
        for user in (module, *module.users_saying(cls.name)):
            for call in user.calls(name):
                loader = replace(
                    holder, module=user, node=call, form=Form.LOADER, made=(*holder.made, call)
                )
                trail.loaders.append(loader)
                yield loader


def _passed_on(
    holder: Holder, call: ast.Call, given: int | str, last: str, trail: Trail
) -> Iterator[Holder]:
    """``enumerate(loaders)`` gives pairs of a number and a loader; ``enumerate(loader)`` gives batches."""
    if holder.slots and last in NUMBERING:
        yield holder.taken_out().within(call, 1).within(call, None)
    elif holder.slots and last in PAIRING and isinstance(given, int):
        yield holder.taken_out().within(call, given).within(call, None)
    else:
        if last == "iter" and not holder.slots:
            trail.passes.append(Pass(holder, call))
        yield holder.at(call)
