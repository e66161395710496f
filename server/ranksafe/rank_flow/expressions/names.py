"""Values of names and attributes."""

from __future__ import annotations

import ast

from ranksafe.rank_flow.frames import Arguments, frame_for, run_frame
from ranksafe.rank_flow.library_objects import library_attribute
from ranksafe.rank_flow.run import DEEPEST, Frame, Run
from ranksafe.rank_flow.traces import Call, matters_to_caller
from ranksafe.rank_flow.values import (
    NOTHING_KNOWN,
    Abstract,
    Object,
    Unassigned,
    Value,
    Varies,
    part_of,
)
from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import FUNCTIONS

_STRUCTURE = frozenset(
    {"__class__", "shape", "ndim", "dtype", "device", "is_cuda", "requires_grad", "grad_fn"}
)
"""What tensors of different data usually have in common."""


def name(run: Run, node: ast.Name) -> Value:
    """The value of a variable, of this call, a call around it, or the file."""
    found = run.variable(node.id)
    if isinstance(found, Unassigned):
        run.missing(found, node)
        return NOTHING_KNOWN
    if found is not None:
        return found
    return _module_value(run, node)


def _module_value(run: Run, node: ast.Name) -> Value:
    """A module-level name: evaluated where its file assigns it just once."""
    module = run.module
    definition = run.functions.named(module, node)
    if definition is not None:
        return definition
    key = (id(module), node.id)
    found = run.globals.get(key)
    if found is not None:
        return found
    run.globals[key] = NOTHING_KNOWN
    bindings = module.module_bindings(node.id)
    value: Value | None = None
    if len(bindings) == 1 and isinstance(bindings[0], ast.Name):
        assigned = module.flow.assigned_value(bindings[0])
        statement = module.parent(bindings[0])
        while isinstance(statement, (ast.Tuple, ast.List)):
            statement = module.parent(statement)
        top = statement is not None and isinstance(module.parent(statement), ast.Module)
        if assigned is not None and top and not module.is_rebound(node.id):
            value = _evaluate(run, module, assigned)
    if value is None and not bindings:
        value = run.by_word(node.id, node)
    if value is None and bindings and isinstance(bindings[0], ast.Name):
        value = run.by_word(node.id, node)
    run.globals[key] = value if value is not None else NOTHING_KNOWN
    return run.globals[key]


def _evaluate(run: Run, module: Module, assigned: ast.expr) -> Value:
    outer_frame, outer_items = run.frame, run.items
    run.frame = Frame(module, module.tree, quiet=True)
    run.items = []
    try:
        return run.value(assigned)
    finally:
        run.frame, run.items = outer_frame, outer_items


def attribute(run: Run, node: ast.Attribute) -> Value:
    """``base.name``."""
    written = run.module.qualified_name(node)
    if written is not None and not written.startswith("builtins."):
        found = run.functions.library_constant(written)
        if found is not None:
            return found
    base = run.value(node.value)
    run.none_used(base, node.value)
    return attribute_of(run, base, node)


def attribute_of(run: Run, base: Value, node: ast.Attribute) -> Value:
    """An attribute of a value."""
    if isinstance(base, Object):
        found = run.attribute(base, node.attr)
        if isinstance(found, Unassigned):
            run.missing(found, node)
            return NOTHING_KNOWN
        if found is None:
            found = property_value(run, base, node)
        if found is None:
            found = library_attribute(run, base, node)
        if found is not None:
            open_ = isinstance(found, Abstract) and found.varies is Varies.PERHAPS
            by_convention = None
            if open_ and not _is_of_control(run, node):
                by_convention = run.by_word(node.attr, node)
            return found if by_convention is None else by_convention
    word = run.by_word(node.attr, node)
    if word is not None and not _is_of_control(run, node):
        return word
    if isinstance(base, Abstract) and base.varies.certain:
        # Batches and losses hand on what they are made of; an object that differs says nothing of its parts.
        if node.attr in _STRUCTURE:
            return NOTHING_KNOWN
        return part_of(base)
    return NOTHING_KNOWN


def _is_of_control(run: Run, node: ast.Attribute) -> bool:
    """``args.should_save`` is true on the main process; ``control.should_save`` is the same everywhere."""
    if node.attr != "should_save":
        return False
    return not run.module.text_of(node.value).endswith("args")


def property_value(run: Run, base: Object, node: ast.Attribute) -> Value | None:
    """``self.is_main`` where it is a property; what is known of accelerate's objects."""
    if base.kind == "object":
        method = run.functions.method(base, node.attr)
        if method is None:
            return run.functions.class_attribute(base, node.attr)
        body = method.node
        if isinstance(body, FUNCTIONS) and any(
            getattr(item, "id", getattr(item, "attr", "")) in ("property", "cached_property")
            for item in body.decorator_list
        ):
            functions = run.functions
            if not functions.concerns(method) and not functions.is_small(method):
                return NOTHING_KNOWN
            if len(run.frame.calls) >= DEEPEST:
                return NOTHING_KNOWN
            frame = frame_for(run, method, base, node, Arguments())
            outer, run.items = run.items, []
            result = run_frame(run, frame, body)
            items, run.items = run.items, outer
            if matters_to_caller(items):
                run.items.append(Call(run.place(node), items))
            return result
        return Object("function", node=body, module=method.module, detail=base)
    if base.kind == "wrapped" and node.attr != "module":
        return None
    return None
