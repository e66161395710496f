"""The statement that tells a sampler the epoch, where sampler or loader are at hand in the loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.loops import Loop
from ranksafe_rules._shared.trails.holder import Form, Holder, Trail
from ranksafe_rules.data.at_hand import counter, is_at_hand, is_inside
from ranksafe_rules.data.epochs import trains


@dataclass(frozen=True, slots=True)
class Telling:
    """What to write at the top of the loop."""

    loop: ast.For
    code: str
    target: str
    """The loop's variable, which may have to be renamed from ``_``."""


def telling(module: Module, trail: Trail, loop: Loop) -> Telling | None:
    """The call of ``set_epoch``; None where nothing in the loop leads to the sampler."""
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
        return None
    target = counter(module, loop, loop.target)
    if target is None:
        return None
    for sampler, condition in _ways_to(module, trail, loop):
        call = f"{sampler}.set_epoch({target})\n"
        return Telling(loop, f"if {condition}:\n    {call}" if condition else call, target)
    return None


def _ways_to(module: Module, trail: Trail, loop: ast.For) -> Iterator[tuple[str, str | None]]:
    """An expression for the sampler that holds in the loop, and the condition it needs."""
    ways = [item.holder.made for item in trail.passes if trains(item)]
    at_hand = [
        item
        for item in trail.holders
        if any(way[: len(item.made)] == item.made for way in ways)
        and is_at_hand(module, item, loop)
    ]
    for holder in at_hand:
        if holder.form is Form.PART:
            condition = _condition(module, trail, holder)
            if condition is not None:
                yield module.text_of(holder.node), condition or None
    if not _is_sampler_of_loader(module, trail):
        return
    for holder in at_hand:
        if holder.form is Form.LOADER and is_inside(module, holder.node, loop):
            sampler = f"{module.text_of(holder.node)}.sampler"
            if _is_certain(module, trail, holder.node):
                yield sampler, None
            elif _is_name_of_module(module, trail.start.func):
                yield sampler, f"isinstance({sampler}, {module.text_of(trail.start.func)})"


def _condition(module: Module, trail: Trail, holder: Holder) -> str | None:
    """The condition under which a variable is the sampler; empty: always; None: not known."""
    name = module.text_of(holder.node)
    values = module.values(holder.node)
    others = [value for value in values.known if value.node is not trail.start]
    if not values.complete:
        return None
    if not others:
        return "" if _is_certain(module, trail, holder.node) else None
    if all(value.is_constant and value.constant is None for value in others):
        return f"{name} is not None"
    if _is_name_of_module(module, trail.start.func):
        return f"isinstance({name}, {module.text_of(trail.start.func)})"
    return None


def _is_certain(module: Module, trail: Trail, node: ast.expr) -> bool:
    """Whether nothing but this sampler is ever used: no branch stands around its way."""
    around = set(module.guards(node))
    ways = [trail.start, *(holder.node for holder in trail.loaders)]
    if any(item not in around for way in ways for item in module.guards(way)):
        return False
    return not any(isinstance(module.parent(way), (ast.IfExp, ast.BoolOp)) for way in ways)


def _is_sampler_of_loader(module: Module, trail: Trail) -> bool:
    """Whether the sampler is the loader's ``sampler`` (not its ``batch_sampler``, not behind a wrapper)."""
    for loader in trail.loaders:
        call = loader.node
        if loader.module is not module or not isinstance(call, ast.Call):
            return False
        given = module.argument_node(call, "sampler", 3)
        values = () if given is None else module.values(given).known
        if not any(value.node is trail.start for value in values):
            return False
    return bool(trail.loaders)


def _is_name_of_module(module: Module, function: ast.expr) -> bool:
    """Whether the class can be written the same anywhere in the file."""
    while isinstance(function, ast.Attribute):
        function = function.value
    return isinstance(function, ast.Name) and bool(module.module_bindings(function.id))
