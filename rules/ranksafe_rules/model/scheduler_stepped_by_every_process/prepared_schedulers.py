"""Schedulers that accelerate steps once for every process."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed

from ranksafe_rules._shared.optimized_models import SCHEDULES
from ranksafe_rules._shared.wrapped_models import is_prepare

_LIBRARY_SCHEDULER: Final = re.compile(
    r"^(transformers|diffusers)\..*get_(\w+_)?(scheduler?|schedule_with\w+)$"
)
_STEPPING_ONCE: Final = frozenset(
    {"step_scheduler_with_optimizer", "split_batches", "dataloader_config"}
)
"""Arguments of Accelerator (1.15.0) with which a step is one step, or may be."""
_COUNTS: Final = re.compile(
    r"num_processes|world_size|num_gpus|n_gpus?\b|num_replicas|device_count"
)
_PLATEAU: Final = re.compile("plateau", re.IGNORECASE)
"""Its `step` takes a metric, which each process's step counts once more."""
_LOOPS = (ast.For, ast.While)
_MAXIMUM_DEPTH: Final = 6


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A scheduler that goes into `prepare`."""

    made: ast.Call
    name: str
    """What the prepared one is called."""


def prepared_schedulers(module: Module, prepare: ast.Call) -> Iterator[Scheduler]:
    """Those of one call, where every step of them certainly is one for each process."""
    if not is_prepare(module, prepare) or not _steps_for_each_process(module):
        return
    targets = _targets(module, prepare)
    for index, argument in enumerate(prepare.args):
        if isinstance(argument, ast.Starred):
            return
        for value in module.values(argument).known:
            if isinstance(value.node, ast.Call) and _is_scheduler(module, value.node):
                if index < len(targets) and not _counts_processes(module, value.node):
                    yield Scheduler(value.node, targets[index])
                break


def steps_for_epochs(module: Module, prepare: ast.Call, scheduler: Scheduler) -> list[ast.Call]:
    """Steps in a loop around the one that trains: once for an epoch, which is not handed over: of N equal calls of
    ``step(epoch)`` each sets the rate of that epoch."""
    return [
        call
        for call in module.calls_written("step")
        if isinstance(call.func, ast.Attribute)
        and (_takes_metric(module, scheduler.made) or not (call.args or call.keywords))
        and unparsed(call.func.value) == scheduler.name
        and _is_same_object(module, prepare, call.func.value)
        and _is_around_training(module, call)
    ]


def length_after_prepare(module: Module, scheduler: Scheduler) -> ast.Call | None:
    """``len(loader)`` of a prepared loader, from which the scheduler's number of steps is computed."""
    for node in _sources(module, scheduler.made, _MAXIMUM_DEPTH):
        if isinstance(node, ast.Call) and module.qualified_name(node.func) == "builtins.len":
            if len(node.args) == 1 and _is_prepared(module, node.args[0]):
                return node
    return None


def _steps_for_each_process(module: Module) -> bool:
    made = module.calls_written("Accelerator")
    return bool(made) and not any(
        keyword.arg is None or keyword.arg in _STEPPING_ONCE
        for call in made
        for keyword in call.keywords
    )


def _targets(module: Module, prepare: ast.Call) -> list[str]:
    statement = module.parent(prepare)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    target = statement.targets[0]
    elements = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return [unparsed(element) for element in elements]


def _is_scheduler(module: Module, call: ast.Call) -> bool:
    name = module.qualified_name(call.func) or ""
    return name.startswith(SCHEDULES) or _LIBRARY_SCHEDULER.match(name) is not None


def _takes_metric(module: Module, made: ast.Call) -> bool:
    name = module.qualified_name(made.func) or ""
    return _PLATEAU.search(f"{name} {module.text_of(made)}") is not None


def _counts_processes(module: Module, made: ast.Call) -> bool:
    """Whether the number of steps takes the number of processes into account."""
    return any(
        isinstance(node, (ast.Name, ast.Attribute)) and _COUNTS.search(unparsed(node))
        for node in _sources(module, made, _MAXIMUM_DEPTH)
    )


def _sources(module: Module, node: ast.AST, depth: int) -> Iterator[ast.AST]:
    """The nodes that an expression is computed from, through variables."""
    for part in ast.walk(node):
        yield part
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and depth:
            for assigned in module.flow.assigned_values(part):
                yield from _sources(module, assigned, depth - 1)


def _is_prepared(module: Module, loader: ast.expr) -> bool:
    """Whether a name is what `prepare` returned, and stays it."""
    if not isinstance(loader, ast.Name):
        return False
    scope, bindings = module.bindings(loader)
    if scope is None:
        return False
    reaching = module.flow.reaching_bindings(loader, scope, bindings)
    return bool(reaching) and all(_is_result_of_prepare(module, item) for item in reaching)


def _is_result_of_prepare(module: Module, binding: ast.AST) -> bool:
    statement = module.parent(binding)
    while isinstance(statement, (ast.Tuple, ast.List)):
        statement = module.parent(statement)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return False
    return is_prepare(module, statement.value)


def _is_same_object(module: Module, prepare: ast.Call, use: ast.expr) -> bool:
    if module.enclosing_function(prepare) is module.enclosing_function(use):
        return module.order_of(prepare) < module.order_of(use)
    if not isinstance(use, ast.Attribute):
        return False
    cls = module.class_of_self(use.value)
    return cls is not None and cls is module.enclosing_class(prepare)


def _is_around_training(module: Module, step: ast.Call) -> bool:
    """Whether the innermost loop around a step has the loop over the batches in it."""
    loop = module.parent(step)
    while loop is not None and not isinstance(loop, _LOOPS):
        if isinstance(loop, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        loop = module.parent(loop)
    if loop is None:
        return False
    return any(
        isinstance(inner, _LOOPS) and inner is not loop and _trains(inner)
        for statement in getattr(loop, "body", [])
        for inner in ast.walk(statement)
    )


def _trains(loop: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "backward"
        for node in ast.walk(loop)
    )
