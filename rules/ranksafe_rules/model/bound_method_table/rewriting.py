"""A table of methods turned into a table of names: what has to change, where every use can be."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe_rules._shared.captures import table_elements
from ranksafe_rules._shared.replicated_class import Function, ReplicatedClass, Store

Replacement = tuple[ast.AST, str]


def rewritten(view: ReplicatedClass, store: Store) -> list[Replacement] | None:
    """Nodes and their new text, None where one use of the table cannot be rewritten."""
    if (
        store.value is None
        or len(view.stores_of(store.attribute)) != 1
        or _is_read_elsewhere(view, store)
    ):
        return None
    changes: list[Replacement] = []
    for element in table_elements(view.module, store.value):
        name = view.self_attribute(element)
        # self.__name is stored under another name, which getattr would not find.
        if name is None or name.startswith("__"):
            return None
        changes.append((element, f'"{name}"'))
    for function, load in view.loads(store.attribute):
        use = _rewritten_use(view, function, load)
        if use is None:
            return None
        changes += use
    return changes


def _is_read_elsewhere(view: ReplicatedClass, store: Store) -> bool:
    """Whether the file reads the attribute of another object than ``self``, which may be one of these modules."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == store.attribute
        and view.self_attribute(node) is None
        for node in view.module.nodes(ast.Attribute)
    )


def _rewritten_use(
    view: ReplicatedClass, function: Function, load: ast.Attribute
) -> list[Replacement] | None:
    module = view.module
    parent = module.parent(load)
    if isinstance(parent, ast.Subscript) and parent.value is load:
        return _called(view, [parent])
    if isinstance(parent, ast.Call) and module.qualified_name(parent.func) == "builtins.len":
        return []
    if isinstance(parent, ast.Attribute) and parent.attr in ("values", "items", "keys"):
        call = module.parent(parent)
        if not isinstance(call, ast.Call) or call.func is not parent:
            return None
        return _rewritten_loop(view, function, call, position=1 if parent.attr == "items" else 0)
    return _rewritten_loop(view, function, load, position=0)


def _rewritten_loop(
    view: ReplicatedClass, function: Function, iterated: ast.expr, position: int
) -> list[Replacement] | None:
    """``for operation in table: ... operation(x)``, as a statement or in a comprehension."""
    loop = view.module.parent(iterated)
    if not isinstance(loop, (ast.For, ast.comprehension)) or loop.iter is not iterated:
        return None
    target: ast.expr = loop.target
    if isinstance(target, ast.Tuple) and position == 1 and len(target.elts) == 2:
        target = target.elts[1]
    elif position == 1:
        return None
    if not isinstance(target, ast.Name):
        return None
    inside = view.module.parent(loop) if isinstance(loop, ast.comprehension) else loop
    if inside is None:
        return None
    uses = [
        node
        for node in view.module.nodes(ast.Name, inside=function)
        if isinstance(node, ast.Name) and node.id == target.id and node is not target
    ]
    within = {id(node) for node in view.module.nodes(ast.Name, inside=inside)}
    if any(id(use) not in within or not isinstance(use.ctx, ast.Load) for use in uses):
        return None
    return _called(view, uses)


def _called(view: ReplicatedClass, uses: Sequence[ast.expr]) -> list[Replacement] | None:
    """``use(...)`` becomes ``getattr(self, use)(...)``; None where a use is anything but called."""
    for use in uses:
        call = view.module.parent(use)
        if not isinstance(call, ast.Call) or call.func is not use:
            return None
    return [(use, f"getattr(self, {view.module.text_of(use)})") for use in uses]
