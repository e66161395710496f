"""Loops over a loader: whether they train, and which loop repeats them epoch after epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.units import callee_name

from ranksafe_rules._shared.loops import Loop, loops_around
from ranksafe_rules._shared.origins import arguments_for
from ranksafe_rules._shared.trails.functions import called, callers
from ranksafe_rules._shared.trails.holder import Function, Pass

_MAXIMUM_DEPTH: Final = 4
_MAXIMUM_FUNCTIONS: Final = 60

TRAINING_CALLS: Final = frozenset(
    {"backward", "manual_backward", "train_batch", "optimize_parameters", "train_step", "training_step"}
)  # fmt: skip
"""Last segments of calls that compute gradients: tensors and GradScaler, Accelerator, DeepSpeed's engine (backward,
train_batch), Lightning, and the two names that hand-written model classes give to one step."""
_RANGES: Final = frozenset({"builtins.range", "itertools.count", "numpy.arange", "torch.arange"})
_SHOWN_RANGES: Final = frozenset({"trange"})
_WRAPPING: Final = frozenset({"tqdm", "track", "enumerate", "master_bar", "progress_bar"})
_NUMBERS: Final = frozenset({"builtins.int", "builtins.round"})


def trains(found: Pass) -> bool:
    """Whether gradients are computed in a loop over the loader, or in a file that takes the batches from a generator
    which does nothing but hand them on."""
    if any(
        callee_name(call) in TRAINING_CALLS
        for module, node in run_by(found)
        for call in module.nodes(ast.Call, node)
        if isinstance(call, ast.Call)
    ):
        return True
    return _hands_on(found) and any(
        user.calls_written(name)
        for user in _users(found.module, found.node, _MAXIMUM_DEPTH)
        for name in TRAINING_CALLS
    )


def _users(module: Module, node: ast.AST, depth: int) -> Iterator[Module]:
    """The files that call the function around a node, and those that call what calls it there."""
    function = module.enclosing_function(node)
    if function is None or depth == 0:
        return
    for user, call in callers(module, function):
        yield user
        yield from _users(user, call, depth - 1)


def _hands_on(found: Pass) -> bool:
    """``yield from loader``, ``for batch in loader: yield batch``."""
    if isinstance(found.node, ast.YieldFrom):
        return True
    return isinstance(found.node, (ast.For, ast.AsyncFor)) and any(
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield)
        for statement in found.node.body
    )


def run_by(found: Pass) -> list[tuple[Module, ast.AST]]:
    """The loop, and the functions that are called in it, directly or through each other."""
    node: ast.AST | None = found.node
    if isinstance(node, ast.Call):
        node = next(loops_around(found.module, node), None) or found.module.enclosing_function(node)
    reached: list[tuple[Module, ast.AST]] = []
    pending = [] if node is None else [(found.module, node, _MAXIMUM_DEPTH)]
    while pending and len(reached) < _MAXIMUM_FUNCTIONS:
        module, current, depth = pending.pop()
        if any(current is known for _, known in reached):
            continue
        reached.append((module, current))
        for call in module.nodes(ast.Call, current) if depth else ():
            function = called(module, call) if isinstance(call, ast.Call) else None
            if function is not None:
                pending.append((function.module, function.function, depth - 1))
    return reached


def repeating_loop(found: Pass) -> tuple[Module, Loop] | None:
    """The loop that goes through the same loader again and again; None when none is seen.

    A loop that makes the loader anew does not repeat it.
    """
    return _repeating(found, found.module, found.node, len(found.holder.entries), _MAXIMUM_DEPTH)


def _repeating(
    found: Pass, module: Module, node: ast.AST, entered: int, depth: int
) -> tuple[Module, Loop] | None:
    function = module.enclosing_function(node)
    made_here = [
        item
        for item in found.holder.made
        if module.unit_of(item) is not None and module.enclosing_function(item) is function
    ]
    for loop in loops_around(module, node):
        if any(module.is_inside(item, loop) for item in made_here):
            return None
        if _is_epoch_loop(module, loop):
            return module, loop
    if function is None or depth == 0 or made_here:
        return None
    entry = found.holder.entries[entered - 1] if entered else None
    if entry is not None and entry.function is function:
        return _repeating(found, entry.module, entry.call, entered - 1, depth - 1)
    return _repeated_by_callers(found, module, function, entered, depth)


def _repeated_by_callers(
    found: Pass, module: Module, function: Function, entered: int, depth: int
) -> tuple[Module, Loop] | None:
    for user, call in callers(module, function):
        loop = _repeating(found, user, call, entered, depth - 1)
        if loop is not None:
            return loop
    return None


def header_of(loop: Loop) -> ast.expr:
    """What a loop runs through, or its condition: the part of it to point at."""
    return loop.test if isinstance(loop, ast.While) else loop.iter


def _is_epoch_loop(module: Module, loop: Loop) -> bool:
    """Whether a loop counts: ``range``, ``trange``, ``count``, ``while``; not over folds, phases or loaders."""
    if isinstance(loop, ast.While):
        return True
    counted = _counted(module, loop.iter)
    if counted is None:
        return isinstance(loop.target, ast.Name) and "epoch" in loop.target.id.lower()
    return not _is_single(module, counted)


def _counted(module: Module, iterated: ast.expr, depth: int = 3) -> ast.Call | None:
    """The ``range(...)`` that a loop runs through, taken out of progress bars and variables."""
    if depth == 0:
        return None
    sources = [value.node for value in module.values(iterated).known]
    if isinstance(iterated, ast.Name):
        for argument in arguments_for(module, iterated):
            sources += [value.node for value in module.values(argument).known]
    for call in sources:
        if not isinstance(call, ast.Call):
            continue
        last = callee_name(call)
        if module.qualified_name(call.func) in _RANGES or last in _SHOWN_RANGES:
            return call
        if last in _WRAPPING and call.args:
            inner = _counted(module, call.args[0], depth - 1)
            if inner is not None:
                return inner
    return None


def _is_single(module: Module, counted: ast.Call) -> bool:
    """Whether ``range`` certainly counts one number at most."""
    if callee_name(counted) == "count" or not counted.args:
        return False
    numbers = [_number(module, item) for item in counted.args[:2]]
    if any(number is None for number in numbers):
        return False
    first, last = (0, numbers[0]) if len(numbers) == 1 else numbers
    assert first is not None
    assert last is not None
    return last - first <= 1


def _number(module: Module, node: ast.expr) -> float | None:
    if isinstance(node, ast.Call) and module.qualified_name(node.func) in _NUMBERS and node.args:
        node = node.args[0]
    number = module.values(node).only_constant()
    return number if isinstance(number, (int, float)) else None
