"""Wrapped models that are only evaluated: nothing that a function does with them takes a gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.call_chains import SAME_OBJECT
from ranksafe_rules._shared.loss_inputs import without_gradients
from ranksafe_rules._shared.trails.functions import called, callers
from ranksafe_rules._shared.trails.variables import reads_of_name, reads_of_parameter

_TRAINING: Final = frozenset({"train", "parameters", "named_parameters", "zero_grad"})
"""What is asked of a model that is trained; an optimizer is given the parameters."""
_ONLY_LOOKING: Final = frozenset({"isinstance", "print", "len", "hasattr", "type", "id"})
_MAXIMUM_DEPTH: Final = 8
_MOST_USES: Final = 100


@dataclass(slots=True)
class _Evaluation:
    """What was seen so far of the uses of one wrapper."""

    evaluated: bool = False
    """Whether some use shows that it is no training: ``model.eval()``, a forward without gradients."""
    left: int = _MOST_USES
    seen: set[int] = field(default_factory=set)


def is_only_evaluated(module: Module, wrap: ast.Call) -> bool:
    """Whether a wrapper stays in the function that makes it and in those that get it from there, some of them evaluate
    it, and none trains."""
    if module.enclosing_function(wrap) is None:
        return False
    state = _Evaluation()
    return _goes_to_evaluation(module, wrap, state, _MAXIMUM_DEPTH) and state.evaluated


def _goes_to_evaluation(module: Module, node: ast.expr, state: _Evaluation, depth: int) -> bool:
    """The same for what an expression gives to a variable, at once, after ``.cuda()`` or ``.eval()``, or as what its
    function returns."""
    parent = module.parent(node)
    while isinstance(parent, ast.Attribute) and parent.attr in SAME_OBJECT - _TRAINING:
        outer = module.parent(parent)
        if not isinstance(outer, ast.Call):
            return False
        state.evaluated |= parent.attr == "eval"
        node, parent = outer, module.parent(outer)
    if isinstance(parent, ast.Expr):
        return True
    if isinstance(parent, ast.Return):
        return depth > 0 and _calls_evaluate(module, parent, state, depth - 1)
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
        return False
    target = parent.targets[0]
    if not isinstance(target, ast.Name):
        return False
    if id(target) in state.seen:
        return True
    state.seen.add(id(target))
    return _all_evaluate(module, reads_of_name(module, target), state, depth)


def _calls_evaluate(module: Module, item: ast.Return, state: _Evaluation, depth: int) -> bool:
    function = module.enclosing_function(item)
    if function is None:
        return False
    calls = list(callers(module, function))
    return bool(calls) and all(
        _goes_to_evaluation(user, call, state, depth) for user, call in calls
    )


def _all_evaluate(
    module: Module, reads: Iterator[ast.expr], state: _Evaluation, depth: int
) -> bool:
    for read in reads:
        state.left -= 1
        if state.left < 0 or not _evaluates(module, read, state, depth):
            return False
    return True


def _evaluates(module: Module, read: ast.expr, state: _Evaluation, depth: int) -> bool:
    function = module.enclosing_function(read)
    if any(
        module.enclosing_function(call) is function for call in module.calls_written("backward")
    ):
        return False
    parent = module.parent(read)
    if isinstance(parent, ast.Return):
        return _goes_to_evaluation(module, read, state, depth)
    if isinstance(parent, ast.Attribute):
        return _is_asked(module, parent, state, depth)
    if isinstance(parent, ast.Call) and parent.func is read:
        state.evaluated |= without_gradients(module, parent)
        return True
    holder = parent.arg if isinstance(parent, ast.keyword) else None
    call = module.parent(parent) if isinstance(parent, ast.keyword) else parent
    if not isinstance(call, ast.Call):
        return False
    given = holder if isinstance(parent, ast.keyword) else call.args.index(read)
    return given is not None and _is_taken(module, call, given, state, depth)


def _is_asked(module: Module, part: ast.Attribute, state: _Evaluation, depth: int) -> bool:
    """``model.eval()``, ``model.module``; ``model = model.eval()`` gives it to a variable again."""
    if part.attr in _TRAINING:
        return False
    call = module.parent(part)
    if isinstance(call, ast.Call) and call.func is part and part.attr in SAME_OBJECT:
        return depth > 0 and _goes_to_evaluation(module, part.value, state, depth - 1)
    return True


def _is_taken(
    module: Module, call: ast.Call, given: int | str, state: _Evaluation, depth: int
) -> bool:
    """Whether the function that gets the wrapper only evaluates it, too."""
    if isinstance(call.func, ast.Name) and call.func.id in _ONLY_LOOKING:
        return True
    found = called(module, call) if depth > 0 else None
    parameter = None if found is None else found.parameter(given)
    if found is None or parameter is None:
        return False
    if id(parameter) in state.seen:
        return True
    state.seen.add(id(parameter))
    reads = reads_of_parameter(found.module, found.function, parameter)
    return _all_evaluate(found.module, reads, state, depth - 1)
