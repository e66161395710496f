"""The wrappers that callers in other files hand to a function: ``train_one_epoch(model, ...)`` in an engine file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.semantics.guards import GuardKind
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.passed_arguments import passed_elsewhere
from ranksafe_rules._shared.wrapped_models import (
    Wrapped,
    Wrapper,
    Wraps,
    was_asked,
    wraps_if_asked,
    wraps_of,
)

_WRAPPERS: Final = ("DistributedDataParallel", "DDP", "DataParallel", "prepare")


def wraps_by_callers(module: Module, expression: ast.expr) -> Iterator[tuple[Module, Wrapped]]:
    """The wrappers that a parameter may stand for, each with the file of the call; nothing where the parameter gets
    another value, or where a condition asks for the launch or for what it is."""
    if not isinstance(expression, ast.Name) or not _may_be_handed_over(module):
        return
    _, bindings = module.bindings(expression)
    parameter = bindings[0] if len(bindings) == 1 else None
    function = module.enclosing_function(expression)
    if function is None or not isinstance(parameter, ast.arg):
        return
    if parameter not in (
        *function.args.posonlyargs,
        *function.args.args,
        *function.args.kwonlyargs,
    ):
        return
    if was_asked(module, expression) or any(
        guard.kind in (GuardKind.LAUNCH, GuardKind.DEVICE_COUNT, GuardKind.RANK)
        for guard in module.guards(expression)
    ):
        return
    for user, given in passed_elsewhere(module, function, parameter.arg):
        yield from ((user, wrapped) for wrapped in wraps_of(user, given).known)


def wraps_anywhere(module: Module, expression: ast.expr) -> Wraps:
    """The wrappers of this file, whatever was asked about them, and else DistributedDataParallel that callers made."""
    own = wraps_if_asked(module, expression)
    if own.known or own.unwrapped:
        return own
    handed = (wrapped for _, wrapped in wraps_by_callers(module, expression))
    return Wraps(tuple(item for item in handed if item.how is Wrapper.DISTRIBUTED), False)


def _may_be_handed_over(module: Module) -> bool:
    """Whether a file that imports this one names a wrapper at all."""
    known: bool | None = module.answers.get("wrappers of callers")
    if known is None:
        known = any(module.users_mention(word) for word in _WRAPPERS)
        module.answers["wrappers of callers"] = known
    return known
