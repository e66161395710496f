"""Calls of the model inside a wrapper."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed

from ranksafe_rules._shared import wrapper_attributes
from ranksafe_rules._shared.inner_models import wrapper_of
from ranksafe_rules._shared.wrapped_by_callers import wraps_anywhere
from ranksafe_rules._shared.wrapped_models import Wraps

_NOT_FORWARD: Final = wrapper_attributes.OF_MODULES - {"forward"} | {"generate"}


@dataclass(frozen=True, slots=True)
class Past:
    """A forward past a wrapper."""

    wrapper: str
    """The text of the wrapper that was passed."""
    wraps: Wraps
    is_model_itself: bool
    """Whether the whole model is called, and its wrapper can be named in its place."""


def past_wrapper(module: Module, call: ast.Call) -> Past | None:
    """What a call passes, if it runs the inner model of DistributedDataParallel, a part or a method of it."""
    part: ast.expr = call.func
    if isinstance(part, ast.Attribute) and part.attr in _NOT_FORWARD:
        return None
    depth = 0
    while True:
        wrapper = wrapper_of(module, part)
        if wrapper is not None:
            text = unparsed(wrapper)
            wraps = wraps_anywhere(module, wrapper)
            direct = depth == 0 and unparsed(part).find(text) >= 0
            return Past(text, wraps, direct and not isinstance(part, ast.Name))
        if not isinstance(part, ast.Attribute):
            return None
        part, depth = part.value, depth + 1
