"""Lists of layers that ``fully_shard`` is given one by one, in the class or from outside."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.values import Sameness, Thing, Unknown
from ranksafe.semantics.units import callee_name

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module
    from ranksafe.semantics.rank_flow.run import Run

_LISTS = frozenset({"torch.nn.ModuleList", "torch.nn.ModuleDict"})
_SHARDS = "fully_shard"
_WALKS = frozenset(
    {"values", "items", "children", "named_children", "enumerate", "reversed", "list"}
)


def sharded_list(run: Run, node: ast.Call, name: str) -> Unknown | None:
    """What ``self.layers = nn.ModuleList(...)`` assigns, where the file shards each of ``.layers``; None for others."""
    if name not in _LISTS:
        return None
    module = run.module
    assigned = module.parent(node)
    target = assigned.targets[0] if isinstance(assigned, ast.Assign) else None
    if not isinstance(target, ast.Attribute) or target.attr not in _sharded_in(module):
        return None
    layer = Thing("wrapped", node=node, module=module, detail="fsdp")
    return Unknown(Sameness.SAME, length=Sameness.SAME, each=layer)


def _sharded_in(module: Module) -> set[str]:
    """Attributes whose items are sharded one by one somewhere in the file."""
    found: set[str] = set()
    for call in module.calls_written(_SHARDS):
        given = call.args[0] if call.args else None
        if isinstance(given, ast.Name):
            found |= _held(_walked_for(module, call, given.id))
        elif isinstance(given, ast.Subscript):
            found |= _held(given.value)
    return found


def _walked_for(module: Module, call: ast.Call, name: str) -> ast.expr | None:
    """What the loop or comprehension that gives a name its values goes through."""
    current = module.parent(call)
    while current is not None:
        if isinstance(current, ast.For) and _binds(current.target, name):
            return current.iter
        for generator in getattr(current, "generators", []):
            if _binds(generator.target, name):
                walked: ast.expr = generator.iter
                return walked
        if isinstance(current, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return None
        current = module.parent(current)
    return None


def _binds(target: ast.expr, name: str) -> bool:
    return any(isinstance(item, ast.Name) and item.id == name for item in ast.walk(target))


def _held(node: ast.expr | None) -> set[str]:
    """The attribute behind ``model.layers``, ``enumerate(model.layers)``, ``self.experts.values()``."""
    if isinstance(node, ast.Attribute):
        return {node.attr}
    if isinstance(node, ast.Call) and callee_name(node) in _WALKS:
        if node.args:
            return _held(node.args[0])
        return _held(node.func.value) if isinstance(node.func, ast.Attribute) else set()
    if isinstance(node, (ast.Tuple, ast.List)):
        starred = [item.value for item in node.elts if isinstance(item, ast.Starred)]
        return {name for item in starred for name in _held(item)}
    return set()
