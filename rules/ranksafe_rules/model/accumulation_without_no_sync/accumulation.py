"""Loops that accumulate the gradients of several backwards for one step of the optimizer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeGuard

from ranksafe.semantics.guards import Guard
from ranksafe.semantics.module import Module
from ranksafe.semantics.units import callee_name
from ranksafe.semantics.walking import unparsed

from ranksafe_rules._shared.loops import loops_around
from ranksafe_rules._shared.loss_inputs import calls_feeding, loss_of
from ranksafe_rules._shared.wrapped_models import Wrapped, Wrapper, wraps_of

_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_HARMLESS_CONTEXTS: Final = frozenset(
    {
        "autocast", "record_function", "profile", "range", "enable_grad", "set_grad_enabled", "detect_anomaly",
        "set_detect_anomaly", "scale_loss",
    }
)  # fmt: skip
"""Last segments of context managers that leave the reduction as it is (torch 2.13.0; apex's `scale_loss`). Any other
one may be somebody's own `no_sync`."""
_USES: Final = ("zero_grad", "clip_grad_norm_", "clip_grad_value_", "unscale_", "get_total_norm")
"""Calls that drop, change or read the gradients of all ranks: where they come in every turn, so must the reduction."""
_OPTIMIZER: Final = "torch.optim.Optimizer"
_MAXIMUM_DEPTH: Final = 4


@dataclass(frozen=True, slots=True)
class Accumulation:
    """A backward whose gradients wait for others."""

    steps: ast.expr
    """How many of them make one step of the optimizer, as written."""
    step: ast.Call
    forward: ast.Call
    """The call of the wrapped model."""
    wrapped: tuple[Wrapped, ...]


def accumulation_at(module: Module, backward: ast.Call) -> Accumulation | None:
    """The accumulation that a backward belongs to, if its loss comes from a wrapped model and nothing around it may
    hold back the reduction."""
    loop = next(loops_around(module, backward), None)
    if loop is None:
        return None
    found = _step_in_loop(module, backward, loop) or _step_after_loop(module, backward, loop)
    if found is None or _may_hold_back(module, backward, loop):
        return None
    forward = _forward_of(module, backward)
    if forward is None or _may_hold_back(module, forward[0], loop):
        return None
    return Accumulation(found[0], found[1], *forward)


def _forward_of(module: Module, backward: ast.Call) -> tuple[ast.Call, tuple[Wrapped, ...]] | None:
    loop = next(loops_around(module, backward), None)
    for loss in loss_of(backward):
        for call in calls_feeding(module, loss):
            if not isinstance(call.func, (ast.Name, ast.Attribute)):
                continue
            wrapped = tuple(
                item
                for item in wraps_of(module, call.func).known
                if item.how in (Wrapper.DISTRIBUTED, Wrapper.PREPARED)
            )
            if wrapped and (next(loops_around(module, call), None) in (loop, None)):
                return call, wrapped
    return None


def _step_in_loop(
    module: Module, backward: ast.Call, loop: ast.AST
) -> tuple[ast.expr, ast.Call] | None:
    """``if (i + 1) % steps == 0: optimizer.step()`` after the backward, in the same loop."""
    outer = set(module.guards(loop))
    around = set(module.guards(backward)) - outer
    if any(_is_remainder(part) for guard in around for part in _parts(module, guard.test)):
        return None
    if any(_period(module, call, outer) is None for call in _uses_in(module, loop)):
        return None
    drops = _calls_in(module, loop, "zero_grad")
    found = None
    for call in _calls_in(module, loop, "step"):
        steps = _period(module, call, outer)
        certain = _steps_an_optimizer(module, call)
        if steps is None and certain:
            return None
        if steps is not None and module.order_of(call) > module.order_of(backward):
            # What steps where gradients are dropped is an optimizer, or stands beside one.
            if certain or (found is None and certain is None and drops):
                found = steps, call
    return found


def _step_after_loop(
    module: Module, backward: ast.Call, loop: ast.AST
) -> tuple[ast.expr, ast.Call] | None:
    """``for _ in range(steps): ... loss.backward()``, then ``optimizer.step()``."""
    steps = _count_of(module, loop)
    if steps is None or _asks_for_turn(module, backward, loop):
        return None
    if _uses_in(module, loop):
        return None
    if any(_steps_an_optimizer(module, call) for call in _calls_in(module, loop, "step")):
        return None
    for statement in _statements_after(module, loop):
        if isinstance(statement, (*_LOOPS, *_FUNCTIONS)):
            return None
        for call in _calls_in(module, statement, "step"):
            if _steps_an_optimizer(module, call):
                return steps, call
    return None


def _statements_after(module: Module, loop: ast.AST) -> list[ast.stmt]:
    parent = module.parent(loop)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and loop in block:
            return block[block.index(loop) + 1 :]
    return []


def _count_of(module: Module, loop: ast.AST) -> ast.expr | None:
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
        return None
    call = loop.iter
    if module.qualified_name(call.func) != "builtins.range" or len(call.args) != 1:
        return None
    return None if module.values(call.args[0]).only_constant() == 1 else call.args[0]


def _asks_for_turn(module: Module, backward: ast.Call, loop: ast.AST) -> bool:
    """Whether the backward runs in some turns of its loop only."""
    assert isinstance(loop, ast.For)
    names = {item.id for item in ast.walk(loop.target) if isinstance(item, ast.Name)}
    return any(
        isinstance(node, ast.Name) and node.id in names
        for guard in set(module.guards(backward)) - set(module.guards(loop))
        for node in ast.walk(guard.test)
    )


def _uses_in(module: Module, loop: ast.AST) -> list[ast.Call]:
    return [call for name in _USES for call in _calls_in(module, loop, name)]


def _calls_in(module: Module, node: ast.AST, name: str) -> list[ast.Call]:
    return [call for call in module.calls_written(name) if module.is_inside(call, node)]


def _steps_an_optimizer(module: Module, call: ast.Call) -> bool | None:
    """True for ``optimizer.step()`` and ``scaler.step(optimizer)``, False for a scheduler, None for what is unknown."""
    if not isinstance(call.func, ast.Attribute):
        return None
    answers = [_is_optimizer(module, item) for item in (call.func.value, *call.args[:1])]
    return True if True in answers else answers[0]


def _is_optimizer(module: Module, expression: ast.expr) -> bool | None:
    if not isinstance(expression, (ast.Name, ast.Attribute, ast.Subscript)):
        return None
    kind = module.type_of(expression)
    if kind is not None:
        return module.is_subclass(kind, _OPTIMIZER)
    text = unparsed(expression)
    drops = any(
        isinstance(call.func, ast.Attribute) and unparsed(call.func.value) == text
        for call in module.calls_written("zero_grad")
    )
    return True if drops else None


def _period(module: Module, call: ast.Call, outer: set[Guard]) -> ast.expr | None:
    """``steps`` where a call runs only if ``i % steps == 0``, in one of the ways to write that."""
    for guard in module.guards(call):
        if guard in outer:
            continue
        for remainder in _remainders(module, guard):
            if module.values(remainder.right).only_constant() != 1:
                return remainder.right
    return None


def _remainders(module: Module, guard: Guard) -> list[ast.BinOp]:
    test = _behind(module, guard.test)
    if _is_remainder(test):
        return [] if guard.positive else [test]
    wanted = ast.Eq if guard.positive else ast.NotEq
    return [
        left
        for node in _parts(module, test)
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], wanted)
        if _is_remainder(left := _behind(module, node.left))
    ]


def _is_remainder(node: ast.AST) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)


def _behind(module: Module, node: ast.expr) -> ast.expr:
    """What a name was assigned, where that is one thing."""
    assigned = module.flow.assigned_values(node) if isinstance(node, ast.Name) else []
    return assigned[0] if len(assigned) == 1 else node


def _parts(module: Module, test: ast.expr, depth: int = _MAXIMUM_DEPTH) -> Iterator[ast.AST]:
    """All that a condition is made of, under names, too."""
    for node in ast.walk(test):
        yield node
        if isinstance(node, ast.Name) and depth:
            behind = _behind(module, node)
            if behind is not node:
                yield from _parts(module, behind, depth - 1)


def _may_hold_back(module: Module, node: ast.AST, loop: ast.AST) -> bool:
    """Whether a context manager between a node and the loop may turn off the reduction."""
    current = module.parent(node)
    while current is not None and current is not loop and not isinstance(current, _FUNCTIONS):
        if isinstance(current, (ast.With, ast.AsyncWith)):
            for item in current.items:
                context = item.context_expr
                if not isinstance(context, ast.Call):
                    return True
                if callee_name(context) not in _HARMLESS_CONTEXTS:
                    return True
        current = module.parent(current)
    return False
