"""What a call gives to the parameters of a function."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from ranksafe.rank_flow.values import Constant, Sequence, Value, is_small, listed


@dataclass(slots=True)
class Arguments:
    """The values of a call's arguments, each evaluated once."""

    positional: list[Value] = field(default_factory=list)
    named: dict[str, Value] = field(default_factory=dict)
    open_ended: bool = False
    """Whether ``*args`` or ``**kwargs`` of unknown content may give more."""

    @property
    def values(self) -> list[Value]:
        """All that is given by place or name."""
        return [*self.positional, *self.named.values()]


def arguments_of(call: ast.Call, values: list[Value]) -> Arguments:
    """The arguments of a call, of which all expressions have been evaluated, positional ones first."""
    given = Arguments()
    for expression, value in zip(call.args, values, strict=False):
        if not isinstance(expression, ast.Starred):
            given.positional.append(value)
        elif isinstance(value, Sequence):
            given.positional.extend(value.items)
        else:
            given.open_ended = True
            break
    for keyword, value in zip(call.keywords, values[len(call.args) :], strict=True):
        if keyword.arg is None:
            given.open_ended = True
        else:
            given.named[keyword.arg] = value
    return given


def bound(
    parameters: ast.arguments, given: Arguments, *, has_receiver: bool, unknown: Value
) -> dict[str, Value]:
    """The parameters' values; ``unknown`` where neither the call nor a constant default tells.

    ``has_receiver``: whether the first parameter is bound already.
    """
    positional = [*parameters.posonlyargs, *parameters.args]
    named = positional[1:] if has_receiver else positional
    found = dict.fromkeys([item.arg for item in (*named, *parameters.kwonlyargs)], unknown)
    if not given.open_ended:
        by_place = positional[len(positional) - len(parameters.defaults) :]
        defaults = [*zip(by_place, parameters.defaults, strict=True)]
        defaults += [
            (item, default)
            for item, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
            if default is not None
        ]
        for item, default in defaults:
            if isinstance(default, ast.Constant) and is_small(default.value):
                found[item.arg] = Constant(default.value)
    found.update({item.arg: value for item, value in zip(named, given.positional, strict=False)})
    found.update({name: value for name, value in given.named.items() if name in found})
    if parameters.vararg is not None:
        rest = tuple(given.positional[len(named) :])
        found[parameters.vararg.arg] = unknown if given.open_ended else listed(rest)
    if parameters.kwarg is not None:
        found[parameters.kwarg.arg] = unknown
    return found
