"""Follow an object from where it is made, one expression at a time."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.trails.arguments import handed_over
from ranksafe_rules._shared.trails.functions import callers, is_property
from ranksafe_rules._shared.trails.holder import Entry, Form, Holder, Pass, Slot, Trail
from ranksafe_rules._shared.trails.knowledge import LOOK_UPS
from ranksafe_rules._shared.trails.variables import (
    reads_of_attribute,
    reads_of_name,
    reads_of_property,
)

_MAXIMUM_STEPS: Final = 400


def trail_of(
    module: Module,
    start: ast.Call,
    form: Form = Form.PART,
    *,
    unchanging: frozenset[str] = frozenset(),
) -> Trail:
    """Where the object that a call makes goes.

    ``unchanging``: methods whose result stands for the object as well (``dataset.map(f)``).
    """
    trail = Trail(start, files=[module])
    pending = [Holder(module, start, form, made=(start,))]
    seen: set[tuple[int, Form, tuple[Slot, ...]]] = set()
    while pending:
        holder = pending.pop()
        key = (id(holder.node), holder.form, holder.slots)
        if key in seen:
            continue
        seen.add(key)
        trail.holders.append(holder)
        if len(seen) > _MAXIMUM_STEPS:
            trail.given_up = True
            return trail
        if holder.module not in trail.files:
            trail.files.append(holder.module)
        holder.module.read_unit_of(holder.node)
        pending.extend(_next(holder, trail, unchanging))
    return trail


def _next(holder: Holder, trail: Trail, unchanging: frozenset[str]) -> Iterator[Holder]:
    parent = holder.module.parent(holder.node)
    if isinstance(parent, ast.Attribute):
        yield from _through_attribute(holder, parent, unchanging)
    elif parent is not None:
        step = _STEPS.get(type(parent))
        if step is not None:
            yield from step(holder, parent, trail)


def _alternative(holder: Holder, parent: ast.AST, trail: Trail) -> Iterator[Holder]:  # noqa: ARG001
    if isinstance(parent, ast.IfExp) and parent.test is holder.node:
        return
    if isinstance(parent, ast.expr):
        yield holder.at(parent)


def _assigned(holder: Holder, parent: ast.AST, trail: Trail) -> Iterator[Holder]:
    if isinstance(parent, ast.Assign):
        targets = parent.targets
    elif isinstance(parent, (ast.AnnAssign, ast.NamedExpr, ast.AugAssign)):
        targets = [parent.target]
        if isinstance(parent, ast.NamedExpr):
            yield holder.at(parent)
    else:
        return
    if holder.node is not getattr(parent, "value", None):
        return
    for target in targets:
        yield from _bound(holder, target, trail)


def _bound(holder: Holder, target: ast.expr, trail: Trail) -> Iterator[Holder]:
    """The object under the name, attribute, item or elements that it is assigned to."""
    module = holder.module
    if isinstance(target, ast.Name):
        for use in reads_of_name(module, target):
            yield holder.at(use)
    elif isinstance(target, ast.Attribute):
        trail.stored = True
        stored = replace(holder, made=(*holder.made, target))
        for user, use in reads_of_attribute(module, target):
            yield replace(stored, module=user, node=use)
    elif isinstance(target, ast.Subscript):
        slot = target.slice.value if isinstance(target.slice, ast.Constant) else None
        yield from _put_into(holder, target.value, slot if isinstance(slot, (int, str)) else None)
    elif isinstance(target, (ast.Tuple, ast.List)) and holder.slots:
        slot = holder.slots[-1]
        starred = any(isinstance(item, ast.Starred) for item in target.elts)
        if isinstance(slot, int) and slot < len(target.elts) and not starred:
            yield from _bound(holder.taken_out(), target.elts[slot], trail)
        else:
            for item in target.elts:
                yield from _bound(holder.taken_out(), item, trail)


def _put_into(holder: Holder, container: ast.expr, slot: Slot) -> Iterator[Holder]:
    """The container that the object was put into, wherever it is read."""
    module = holder.module
    if isinstance(container, ast.Name):
        for use in module.loads_of_same_name(container):
            if use is not container:
                yield holder.within(use, slot)
    elif isinstance(container, ast.Attribute):
        for user, read in reads_of_attribute(module, container):
            if read is not container:
                yield replace(holder, module=user).within(read, slot)


def _displayed(holder: Holder, parent: ast.AST, trail: Trail) -> Iterator[Holder]:  # noqa: ARG001
    if isinstance(parent, (ast.Tuple, ast.List)) and isinstance(parent.ctx, ast.Load):
        index = next(i for i, item in enumerate(parent.elts) if item is holder.node)
        starred = any(isinstance(item, ast.Starred) for item in parent.elts)
        yield holder.within(parent, None if starred else index)
    elif isinstance(parent, ast.Dict):
        for key, value in zip(parent.keys, parent.values, strict=True):
            if value is holder.node:
                if key is None:
                    yield holder.at(parent)
                    continue
                name = key.value if isinstance(key, ast.Constant) else None
                yield holder.within(parent, name if isinstance(name, (int, str)) else None)
    elif isinstance(parent, ast.DictComp) and parent.value is holder.node:
        yield holder.within(parent, None)
    elif isinstance(parent, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        if parent.elt is holder.node:
            yield holder.within(parent, None)


def _returned(holder: Holder, parent: ast.AST, trail: Trail) -> Iterator[Holder]:
    module = holder.module
    function = module.enclosing_function(parent)
    if function is None:
        return
    if holder.entries and holder.entries[-1].function is function:
        entry: Entry = holder.entries[-1]
        yield replace(holder, module=entry.module, node=entry.call, entries=holder.entries[:-1])
        return
    trail.returned = True
    owner = module.parent(function)
    if is_property(function) and isinstance(owner, ast.ClassDef):
        for user, read in reads_of_property(module, owner, function.name):
            yield replace(holder, module=user, node=read, made=(*holder.made, function))
        return
    for user, call in callers(module, function):
        yield replace(holder, module=user, node=call, made=(*holder.made, call))


def _argument(holder: Holder, parent: ast.AST, trail: Trail) -> Iterator[Holder]:
    module = holder.module
    if isinstance(parent, ast.keyword):
        call = module.parent(parent)
        if not isinstance(call, ast.Call):
            return
        if parent.arg is not None:
            yield from handed_over(holder, call, parent.arg, trail)
        elif holder.slots:
            key = holder.slots[-1]
            if isinstance(key, str):
                yield from handed_over(holder.taken_out(), call, key, trail)
            else:
                trail.unknown.append(holder)
    elif isinstance(parent, ast.Call) and holder.node is not parent.func:
        index = next(i for i, item in enumerate(parent.args) if item is holder.node)
        for container, slot in handed_to_container(parent, index):
            yield from _put_into(holder, container, slot)
        yield from handed_over(holder, parent, index, trail)


def handed_to_container(call: ast.Call, index: int) -> Iterator[tuple[ast.expr, Slot]]:
    """The container of ``container.append(x)`` and its like."""
    if isinstance(call.func, ast.Attribute) and index == len(call.args) - 1:
        if call.func.attr in ("append", "add", "insert", "appendleft"):
            yield call.func.value, None


def _through_attribute(
    holder: Holder, attribute: ast.Attribute, unchanging: frozenset[str]
) -> Iterator[Holder]:
    """Methods of the object or of its container."""
    call = holder.module.parent(attribute)
    if not isinstance(call, ast.Call) or call.func is not attribute:
        return
    name = attribute.attr
    if not holder.slots:
        if name in unchanging:
            yield holder.at(call)
    elif name in ("values", "copy"):
        yield holder.at(call)
    elif name == "items":
        yield holder.taken_out().within(call, 1).within(call, None)
    elif name in LOOK_UPS and call.args:
        if _fits(holder.slots[-1], call.args[0]):
            yield holder.taken_out().at(call)


def _item(holder: Holder, parent: ast.AST, trail: Trail) -> Iterator[Holder]:  # noqa: ARG001
    if not isinstance(parent, ast.Subscript) or parent.value is not holder.node:
        return
    if not holder.slots or not isinstance(parent.ctx, ast.Load):
        return
    if isinstance(parent.slice, ast.Slice):
        yield holder.taken_out().within(parent, None)
    elif _fits(holder.slots[-1], parent.slice):
        yield holder.taken_out().at(parent)


def _fits(slot: Slot, key: ast.expr) -> bool:
    """Whether an item may be the one at a slot."""
    if isinstance(key, ast.UnaryOp) or not isinstance(key, ast.Constant) or slot is None:
        return True
    return bool(key.value == slot)


def _iterated(holder: Holder, parent: ast.AST, trail: Trail) -> Iterator[Holder]:
    if isinstance(parent, ast.YieldFrom):
        if not holder.slots:
            trail.passes.append(Pass(holder, parent))
        return
    if not isinstance(parent, (ast.For, ast.AsyncFor, ast.comprehension)):
        return
    if parent.iter is not holder.node:
        return
    if holder.slots:
        yield from _bound(holder.taken_out(), parent.target, trail)
    elif isinstance(parent, (ast.For, ast.AsyncFor)):
        trail.passes.append(Pass(holder, parent))


_STEPS: Final[dict[type[ast.AST], Callable[[Holder, ast.AST, Trail], Iterator[Holder]]]] = {
    ast.IfExp: _alternative,
    ast.BoolOp: _alternative,
    ast.Await: _alternative,
    ast.Assign: _assigned,
    ast.AnnAssign: _assigned,
    ast.AugAssign: _assigned,
    ast.NamedExpr: _assigned,
    ast.Tuple: _displayed,
    ast.List: _displayed,
    ast.Dict: _displayed,
    ast.ListComp: _displayed,
    ast.SetComp: _displayed,
    ast.DictComp: _displayed,
    ast.GeneratorExp: _displayed,
    ast.Return: _returned,
    ast.keyword: _argument,
    ast.Call: _argument,
    ast.Subscript: _item,
    ast.For: _iterated,
    ast.AsyncFor: _iterated,
    ast.comprehension: _iterated,
    ast.YieldFrom: _iterated,
}
