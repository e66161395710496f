"""The wrappers that callers in other files hand to a function: ``train_one_epoch(model, ...)`` in an engine file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.semantics.guards import GuardKind
from ranksafe.semantics.module import Module
from ranksafe.semantics.structure import Function

from ranksafe_rules._shared.passed_arguments import passed_elsewhere
from ranksafe_rules._shared.wrapped_models import (
    Wrapped,
    Wrapper,
    Wraps,
    may_meet,
    was_asked,
    wraps_if_asked,
    wraps_of,
)

_WRAPPERS: Final = ("DistributedDataParallel", "DDP", "DataParallel")
_OF_MODELS: Final = ("train", "eval", "parameters", "named_parameters", "zero_grad", "state_dict")
"""Methods that show that a parameter is a model."""


def wraps_by_callers(module: Module, expression: ast.expr) -> tuple[tuple[Module, Wrapped], ...]:
    """The wrappers that a function's parameter may stand for, each with the file of the call; none where the parameter
    gets another value, is not used as a model, or where a condition asks for the launch or for what it is, or for
    settings that may exclude it."""
    if not isinstance(expression, ast.Name):
        return ()
    function = module.enclosing_function(expression)
    if function is None or not isinstance(module.parent(function), ast.Module):
        return ()
    handed = _handed_over(module)
    if handed is None:
        return ()
    key = (id(function), expression.id)
    if key not in handed:
        handed[key] = tuple(_found(module, function, expression))
    known = handed[key]
    if (
        not known
        or was_asked(module, expression)
        or any(
            guard.kind in (GuardKind.LAUNCH, GuardKind.DEVICE_COUNT, GuardKind.RANK)
            for guard in module.guards(expression)
        )
    ):
        return ()
    return tuple(item for item in known if may_meet(module, expression, item[1]))


def _handed_over(
    module: Module,
) -> dict[tuple[int, str], tuple[tuple[Module, Wrapped], ...]] | None:
    """What was found for parameters; None where no file that imports this one names a wrapper at all."""
    if "wrappers of callers" not in module.answers:
        named = any(module.users_mention(word) for word in _WRAPPERS)
        module.answers["wrappers of callers"] = {} if named else None
    answer: dict[tuple[int, str], tuple[tuple[Module, Wrapped], ...]] | None
    answer = module.answers["wrappers of callers"]
    return answer


def _found(module: Module, function: Function, name: ast.Name) -> Iterator[tuple[Module, Wrapped]]:
    _, bindings = module.bindings(name)
    if len(bindings) != 1 or not isinstance(bindings[0], ast.arg):
        return
    is_model = any(
        isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == name.id
        and module.enclosing_function(call) is function
        for word in _OF_MODELS
        for call in module.calls_written(word)
    )
    if is_model:
        for user, given in passed_elsewhere(module, function, name.id):
            yield from ((user, wrapped) for wrapped in wraps_of(user, given).known)


def wraps_anywhere(module: Module, expression: ast.expr) -> Wraps:
    """The wrappers of this file, whatever was asked about them, and else DistributedDataParallel that callers made."""
    own = wraps_if_asked(module, expression)
    if own.known or own.unwrapped:
        return own
    handed = (wrapped for _, wrapped in wraps_by_callers(module, expression))
    return Wraps(tuple(item for item in handed if item.how is Wrapper.DISTRIBUTED), False)
