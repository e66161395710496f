"""Calls that change what all replicas have to have alike, and that only some ranks make."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ranksafe.semantics.guards import Guard, GuardKind, kind_of_words
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.every_rank import callers
from ranksafe_rules._shared.loops import loops_around
from ranksafe_rules._shared.optimized_models import SCHEDULES
from ranksafe_rules._shared.origins import arguments_for, makers
from ranksafe_rules._shared.trails.functions import class_of
from ranksafe_rules._shared.wrapped_models import is_prepare, unwraps
from ranksafe_rules.checkpoints.wrapped_states import DISTRIBUTED, Wrapping, wrapping_of

_MAXIMUM_DEPTH: Final = 3
_LOAD: Final = "load_state_dict"
_STEP: Final = "step"
_BROUGHT_TOGETHER: Final = re.compile(
    r"broadcast(?!_buffers)|scatter|deepspeed|fsdp|fully_?shard|zero_?redundancy|checkpoint\.state_dict|horovod|hvd\.",
    re.IGNORECASE,
)
"""A file with any of these may hand the state to the other ranks, or keeps a share on each."""


_NUMBERS_OF_RANKS: Final = frozenset(
    {"rank", "local_rank", "global_rank", "get_rank", "get_local_rank", "process_index"}
)
"""The other words for a rank say whether it is the main one."""


class Holder(Enum):
    """What has the state."""

    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class StateChange:
    """One call that some ranks make."""

    call: ast.Call
    holder: Holder
    condition: ast.expr
    """What lets only some ranks come here."""

    @property
    def is_step(self) -> bool:
        """Whether a schedule goes on, else a state is loaded."""
        assert isinstance(self.call.func, ast.Attribute)
        return self.call.func.attr == _STEP


def changes_on_some_ranks(module: Module) -> Iterator[StateChange]:
    """Loads of a state, and steps of a schedule, below a condition that rank 0 alone meets; none where the same is
    done elsewhere in the file, or where something may bring the ranks together again."""
    if module.code_says(_brings_together):
        return
    for method in (_LOAD, _STEP):
        for call in module.calls_written(method):
            if not isinstance(call.func, ast.Attribute):
                continue
            condition = _condition(module, call)
            if condition is None or _is_done_elsewhere(module, call, method):
                continue
            holder = _holder(module, call.func.value, method)
            if holder is None or (holder is Holder.MODEL and _is_last_of_others(module, call)):
                continue
            yield StateChange(call, holder, condition)


def _brings_together(text: str) -> bool:
    return _BROUGHT_TOGETHER.search(text) is not None


def _condition(module: Module, node: ast.AST, depth: int = _MAXIMUM_DEPTH) -> ast.expr | None:
    """What lets only rank 0 come to ``node``, around it or around all calls of its function."""
    found = next(filter(None, map(_rank_zero_asked, module.guards(node))), None)
    function = module.enclosing_function(node)
    if found is not None or function is None or depth == 0:
        return found
    around = [
        _condition(module, call, depth - 1) for call in callers(module, function, certain=True)
    ]
    return around[0] if around and None not in around else None


def _rank_zero_asked(guard: Guard) -> ast.expr | None:
    """The part of a condition that only rank 0 (or a main process on each machine) meets."""
    if guard.kind is not GuardKind.RANK:
        return None
    joined = ast.And if guard.positive else ast.Or
    test = guard.test
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, joined) else [test]
    return next((part for part in parts if _is_rank_zero(part, guard.positive)), None)


def _is_rank_zero(test: ast.expr, holds: bool) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_rank_zero(test.operand, not holds)
    asked = test.left if isinstance(test, ast.Compare) else test
    word = _rank_word(asked)
    if word is None:
        return False
    if not isinstance(test, ast.Compare):
        return (word in _NUMBERS_OF_RANKS) is not holds
    if len(test.ops) != 1 or word not in _NUMBERS_OF_RANKS:
        return False
    numbers = _numbers(test.comparators[0])
    equal = (ast.Eq, ast.In) if holds else (ast.NotEq, ast.NotIn)
    return isinstance(test.ops[0], equal) and 0 in numbers and numbers <= {0, -1}


def _rank_word(node: ast.expr) -> str | None:
    """The last word of ``dist.get_rank()``, ``args.local_rank``, ``accelerator.is_main_process``."""
    if isinstance(node, ast.Call):
        return None if node.args else _rank_word(node.func)
    if kind_of_words(node) is not GuardKind.RANK:
        return None
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)


def _numbers(node: ast.expr) -> set[int]:
    """The integers of ``0``, ``-1`` and ``[-1, 0]``."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return set()
    items = value if isinstance(value, (list, tuple, set)) else [value]
    return {item for item in items if isinstance(item, int)}


def _is_done_elsewhere(module: Module, call: ast.Call, method: str) -> bool:
    """Whether another call does the same to the same object, where other ranks may come."""
    assert isinstance(call.func, ast.Attribute)
    receiver = module.text_of(call.func.value)
    return any(
        other is not call
        and isinstance(other.func, ast.Attribute)
        and module.text_of(other.func.value) == receiver
        and _condition(module, other) is None
        for other in module.calls_written(method)
    )


def _holder(module: Module, receiver: ast.expr, method: str) -> Holder | None:
    known = _class_of(module, receiver)
    if known.startswith(SCHEDULES):
        return Holder.SCHEDULER
    if method == _STEP:
        return None
    if known.startswith("torch.optim.") or (not known and _works_as_optimizer(module, receiver)):
        return Holder.OPTIMIZER
    is_inner = isinstance(receiver, ast.Attribute) and receiver.attr == "module"
    model = receiver.value if isinstance(receiver, ast.Attribute) and is_inner else receiver
    return Holder.MODEL if wrapping_of(module, model) is Wrapping.YES else None


def _is_last_of_others(module: Module, load: ast.Call) -> bool:
    """Whether no other rank uses a variable's model again: rank 0 takes the best weights to test them at the end."""
    assert isinstance(load.func, ast.Attribute)
    model = load.func.value
    while isinstance(model, ast.Attribute):
        model = model.value
    function = module.enclosing_function(load)
    if not isinstance(model, ast.Name) or any(
        isinstance(binding, ast.arg) for binding in module.bindings(model)[1]
    ):
        return False
    again = list(loops_around(module, load))
    names = _other_names(module, model.id, function)
    return not any(
        isinstance(use, ast.Name)
        and use.id in names
        and (
            module.order_of(use) > module.order_of(load)
            or module.enclosing_function(use) is not function
            or any(loop in again for loop in loops_around(module, use))
        )
        and _condition(module, use) is None
        for use in module.nodes(ast.Name, inside=function)
    )


def _other_names(module: Module, name: str, function: ast.AST | None) -> set[str]:
    """What the wrapper and the model in it are called."""
    joined = [
        {part.id for node in pair for part in ast.walk(node) if isinstance(part, ast.Name)}
        for node in module.nodes(ast.Assign, inside=function)
        if isinstance(node, ast.Assign)
        for pair in _same_models(module, node)
    ]
    names = {name}
    while more := set().union(*(each for each in joined if each & names)) - names:
        names |= more
    return names


def _same_models(module: Module, assigned: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What an assignment gives another name, or wraps, or takes out of its wrapper, with the new name."""
    target, value = assigned.targets[0], assigned.value
    if isinstance(value, (ast.Name, ast.Attribute, ast.IfExp)):
        yield target, value
    elif isinstance(value, ast.Call) and (
        module.qualified_name(value.func) == DISTRIBUTED
        or unwraps(value)
        or is_prepare(module, value)
    ):
        given = [*value.args, *(keyword.value for keyword in value.keywords)]
        targets = target.elts if isinstance(target, ast.Tuple) else [target] * len(given)
        yield from zip(targets, given, strict=False)


def _class_of(module: Module, receiver: ast.expr) -> str:
    """The canonical class of an object, through the parameters of the file's functions too; empty: not known."""
    known = class_of(module, receiver)
    if known is not None:
        return known
    made = {module.type_of(maker) for maker in makers(module, receiver)}
    return next(iter(made)) or "" if len(made) == 1 else ""


def _works_as_optimizer(module: Module, receiver: ast.expr, depth: int = _MAXIMUM_DEPTH) -> bool:
    """Whether a variable, or what is passed for a parameter, clears gradients and makes steps, or gets a schedule."""
    if not isinstance(receiver, ast.Name):
        return False
    methods: set[str] = set()
    for use in module.loads_of_same_name(receiver):
        parent = module.parent(use)
        if isinstance(parent, ast.Attribute):
            methods.add(parent.attr)
        elif isinstance(parent, ast.Call) and use in parent.args[:1]:
            if (module.qualified_name(parent.func) or "").startswith(SCHEDULES):
                return True
    return {"zero_grad", _STEP} <= methods or (
        depth > 0
        and any(
            _works_as_optimizer(module, given, depth - 1)
            for given in arguments_for(module, receiver)
        )
    )
