"""Which modules nn.DataParallel may copy, and which modules meet several processes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.facts import DATA_PARALLEL, TRAINER
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.plain_python import data_parallel_possible
from ranksafe_rules._shared.processes import launchers_shown

MODULE = "torch.nn.Module"
_BESIDE_MODELS = re.compile(r"(Loss|Losses|Criterion|Metric|Metrics)$")


def is_neural_module(module: Module, cls: ast.ClassDef) -> bool:
    """Whether a class of this file derives from torch.nn.Module."""
    return module.is_subclass(module.class_name(cls), MODULE)


def is_replicated(module: Module, cls: ast.ClassDef, launch: LaunchContext) -> bool:
    """Whether nn.DataParallel may make copies of this class's instances in the launch that is known or assumed."""
    if not data_parallel_possible(module, launch) or not is_neural_module(module, cls):
        return False

    def answer(node: ast.AST, depth: int) -> bool:  # noqa: ARG001
        assert isinstance(node, ast.ClassDef)
        return _may_be_inside(module, node)

    return bool(module.memoized("inside-replicated-model", cls, 0, answer))


def meets_several_processes(module: Module, launch: LaunchContext) -> bool:
    """Whether the file shows, or the launch says, that each GPU has a process of its own."""
    if launch.assumed_gpus < 2:
        return False
    facts = module.facts
    if launchers_shown(module) or facts.distributed_data_parallel or facts.accelerator:
        return True
    trains = bool(facts.trainers) or facts.is_entry
    return launch.launcher.starts_one_process_per_gpu and trains


def wrapped_models(module: Module) -> list[ast.expr]:
    """The expressions handed to nn.DataParallel, and to a Trainer as its model, in this file."""

    def read(node: ast.AST, depth: int) -> list[ast.expr]:  # noqa: ARG001
        return list(_wrapped_models(module))

    models: list[ast.expr] = module.memoized("wrapped-models", module.tree, 0, read)
    return models


def listed_devices(module: Module, wrap: ast.Call) -> int | None:
    """The number of ``device_ids`` of an nn.DataParallel, where they are one list or range."""
    node = module.argument_node(wrap, "device_ids", 1)
    listed = None if node is None else module.values(node).only_expression()
    if isinstance(listed, (ast.List, ast.Tuple)):
        return len(listed.elts)
    if isinstance(listed, ast.Call) and len(listed.args) == 1:
        if module.qualified_name(listed.func) == "builtins.range":
            count = module.values(listed.args[0]).only_constant()
            return count if isinstance(count, int) else None
    return None


def _wrapped_models(module: Module) -> Iterator[ast.expr]:
    for call in module.calls(DATA_PARALLEL):
        model = module.argument_node(call, "module", 0)
        if model is not None:
            yield model
    for call in module.calls(TRAINER):
        model = module.argument_node(call, "model", 0)
        if model is not None:
            yield model


def _may_be_inside(module: Module, cls: ast.ClassDef) -> bool:
    """False where the file shows that ``cls`` is used beside the wrapped models (a loss function, say): their classes
    are known and not built of it, and no instance of it is handed on. Wrapped in another file, a class is taken to be
    in the model unless it is called a loss."""
    models = wrapped_models(module)
    if not models:
        return _BESIDE_MODELS.search(cls.name) is None
    types = [module.type_of(model) for model in models]
    if None in types:
        return True
    roots = [module.class_named(name) for name in types]
    reached: list[ast.ClassDef] = []
    pending = [root for root in roots if root is not None]
    while pending:
        current = pending.pop()
        if current in reached:
            continue
        reached.append(current)
        pending += _classes_mentioned(module, current)
    return cls in reached or _is_handed_on(module, cls)


def _classes_mentioned(module: Module, cls: ast.ClassDef) -> list[ast.ClassDef]:
    """Classes of this file that a class derives from or mentions in its methods."""
    expressions = [
        node
        for kind in (ast.Name, ast.Attribute)
        for node in module.nodes(kind, inside=cls)
        if isinstance(node, ast.expr)
    ]
    found = {module.class_named(module.qualified_name(node)) for node in expressions}
    return [item for item in found if item is not None]


def _is_handed_on(module: Module, cls: ast.ClassDef) -> bool:
    """Whether an instance made outside the classes is an argument of another call, or put into an attribute."""
    for call in module.constructions(cls):
        if module.enclosing_class(call) is not None:
            continue
        statement = _statement(module, call)
        if not isinstance(statement, ast.Assign) or not _is_whole_value(statement, call):
            return True
        for target in statement.targets:
            if not isinstance(target, ast.Name):
                return True
            if any(_is_argument(module, use) for use in module.loads_of_same_name(target)):
                return True
    return False


def _is_whole_value(statement: ast.Assign, call: ast.Call) -> bool:
    """``x = Cls(...)`` and ``x = Cls(...).to(device)``, not ``x = wrap(Cls(...))``."""
    value: ast.expr = statement.value
    while value is not call:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            value = value.func.value
        else:
            return False
    return True


def _is_argument(module: Module, use: ast.Name) -> bool:
    parent = module.parent(use)
    if isinstance(parent, (ast.keyword, ast.Starred, ast.List, ast.Tuple, ast.Dict, ast.Assign)):
        return True
    return isinstance(parent, ast.Call) and parent.func is not use


def _statement(module: Module, node: ast.AST) -> ast.AST | None:
    current: ast.AST | None = node
    while current is not None and not isinstance(current, ast.stmt):
        current = module.parent(current)
    return current
