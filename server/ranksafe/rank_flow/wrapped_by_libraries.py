"""Models that libraries wrap: DeepSpeed's engine, what a Fabric sets up."""

from __future__ import annotations

import ast

from ranksafe.rank_flow.operations import Operation
from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.syntax import argument
from ranksafe.rank_flow.traces import Event
from ranksafe.rank_flow.values import NOTHING_KNOWN, Object, Value, listed
from ranksafe.semantics.module import Module

ENGINE = "deepspeed.DeepSpeedEngine"
INITIALIZE = "deepspeed.initialize"
_FABRIC = "lightning.fabric.Fabric."
_MODEL, _CONFIG = 1, 10
"""Positions of arguments of ``deepspeed.initialize`` (DeepSpeed master, commit 0a1fbe1d)."""
_MAXIMUM_DEPTH = 3


def wrapped_by_library(
    run: Run, node: ast.Call, operation: Operation, receiver: Value | None, arguments: list[Value]
) -> Value | None:
    """What a wrapping call of a library returns; None for other operations."""
    if operation.name == INITIALIZE:
        return _engine(run, node, operation)
    if operation.name in (f"{_FABRIC}setup", f"{_FABRIC}setup_module"):
        return _set_up(run, node, receiver, arguments)
    return None


def _engine(run: Run, node: ast.Call, operation: Operation) -> Value:
    """``(engine, optimizer, training_dataloader, lr_scheduler)``; making the engine broadcasts the parameters."""
    engine = engine_of(run.module, node)
    model = argument(node, _MODEL, "model")
    inner = NOTHING_KNOWN if model is None else run.value(model)
    if engine.detail == "zero3":
        # The hooks that gather the parameters sit on the module itself.
        inner = Object("wrapped", node=node, module=run.module, detail="zero3")
    run.set_attribute(engine, "module", inner)
    run.items.append(Event(operation, run.place(node), model=engine))
    loader = Object("loader", node=node, module=run.module, detail="sharded")
    return listed((engine, NOTHING_KNOWN, loader, NOTHING_KNOWN))


def _set_up(run: Run, node: ast.Call, receiver: Value | None, arguments: list[Value]) -> Value:
    """The model, or the model and its optimizers."""
    if not node.args:
        return NOTHING_KNOWN
    detail = receiver.detail if isinstance(receiver, Object) else None
    model = Object("wrapped", node=node, module=run.module, detail=detail or "ddp")
    run.set_attribute(model, "module", arguments[0])
    if len(node.args) == 1:
        return model
    if any(isinstance(item, ast.Starred) for item in node.args):
        return NOTHING_KNOWN
    return listed((model, *arguments[1 : len(node.args)]))


def engine_of(module: Module, node: ast.Call) -> Object:
    """The engine that a call of ``deepspeed.initialize`` makes: ``zero3``, ``unsharded``, or ``engine`` where its
    stage is not seen."""
    config = argument(node, _CONFIG, "config", "config_params")
    stage = None if config is None else zero_stage(module, config)
    detail = "zero3" if stage == 3 else "engine" if stage is None else "unsharded"
    return Object("wrapped", type=ENGINE, node=node, module=module, detail=detail)


def engine_kept_in(module: Module, cls: ast.ClassDef, attribute: str) -> Object | None:
    """The engine that a method of a class puts into an attribute: ``self.engine, *_ = deepspeed.initialize(...)``."""
    found: list[ast.Call] = []
    for store in module.attribute_stores(cls, attribute):
        target: ast.AST = store
        parent = module.parent(store)
        if isinstance(parent, (ast.Tuple, ast.List)) and parent.elts[0] is store:
            target, parent = parent, module.parent(parent)
        if not isinstance(parent, ast.Assign) or target is store:
            return None
        if not isinstance(parent.value, ast.Call):
            return None
        if module.qualified_name(parent.value.func) != INITIALIZE:
            return None
        found.append(parent.value)
    return engine_of(module, found[0]) if len(found) == 1 else None


def zero_stage(module: Module, node: ast.expr, depth: int = 0) -> int | None:
    """The ZeRO stage in a configuration that is written as a dictionary, also behind a name or a function that returns
    it; None where it is not seen. A dictionary without ``zero_optimization`` is stage 0."""
    if depth > _MAXIMUM_DEPTH:
        return None
    if isinstance(node, ast.Dict):
        return _stage_of(module, node, depth)
    candidates: list[ast.expr] = []
    if isinstance(node, ast.Name):
        candidates = [] if _is_changed(module, node) else list(module.flow.assigned_values(node))
    elif isinstance(node, ast.Call):
        function = module.function_called(node)
        if function is not None:
            candidates = [item.value for item in module.returns_of(function) if item.value]
    stages = {zero_stage(module, item, depth + 1) for item in candidates}
    return stages.pop() if len(stages) == 1 else None


def _is_changed(module: Module, node: ast.Name) -> bool:
    """Whether something in a dictionary is set after it was made."""
    for load in module.loads_of_same_name(node):
        current: ast.AST = load
        parent = module.parent(current)
        while isinstance(parent, ast.Subscript) and parent.value is current:
            current, parent = parent, module.parent(parent)
        if isinstance(current, ast.Subscript) and isinstance(current.ctx, ast.Store):
            return True
        if isinstance(parent, ast.Attribute) and parent.attr in ("update", "setdefault"):
            return True
    return False


def _stage_of(module: Module, node: ast.Dict, depth: int) -> int | None:
    if any(key is None for key in node.keys):
        return None
    items = {
        key.value: value
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant)
    }
    inner = items.get("zero_optimization")
    if inner is None:
        return 0 if depth or len(items) == len(node.keys) else None
    if isinstance(inner, ast.Name):
        assigned = list(module.flow.assigned_values(inner))
        inner = assigned[0] if len(assigned) == 1 else inner
    if not isinstance(inner, ast.Dict):
        return None
    for key, value in zip(inner.keys, inner.values, strict=True):
        if isinstance(key, ast.Constant) and key.value == "stage":
            if isinstance(value, ast.Constant) and isinstance(value.value, int):
                return value.value
            return None
    return None
