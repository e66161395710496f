"""Arguments of calls, and the parameters that they are bound to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.expressions.containers import dictionary_of
from ranksafe.semantics.rank_flow.library_calls.iteration import element
from ranksafe.semantics.rank_flow.run import Frame
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    Known,
    Many,
    Thing,
    Unknown,
    Value,
    combined,
)
from ranksafe.semantics.walking import FUNCTIONS

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter


@dataclass(slots=True)
class Given:
    """What a call passes, in the order of the parameters."""

    positional: list[Value] = field(default_factory=list)
    named: dict[str, Value] = field(default_factory=dict)
    more: Value | None = None
    """What each further positional argument is, after ``*values`` of unknown length."""
    more_named: Value | None = None
    """What each further named argument is, after ``**values`` of unknown keys."""

    def values(self) -> list[Value]:
        """Everything that is passed."""
        further = [item for item in (self.more, self.more_named) if item is not None]
        return [*self.positional, *self.named.values(), *further]


def given_in(interpreter: Interpreter, call: ast.AST) -> Given:
    """The arguments that a call writes; evaluated in order."""
    found = Given()
    if not isinstance(call, ast.Call):
        return found
    for expression in call.args:
        value = interpreter.expressions.value(expression)
        if not isinstance(expression, ast.Starred):
            if found.more is None:
                found.positional.append(value)
            else:
                found.more = combined(found.more, value)
        elif isinstance(value, Many) and found.more is None:
            found.positional += value.items
        else:
            each = element(value)
            found.more = each if found.more is None else combined(found.more, each)
    for keyword in call.keywords:
        value = interpreter.expressions.value(keyword.value)
        if keyword.arg is not None:
            found.named[keyword.arg] = value
        elif isinstance(value, Unknown) and value.entries is not None:
            found.named.update({key: item for key, item in value.entries if isinstance(key, str)})
        else:
            found.more_named = combined(value)
    return found


def bind(frame: Frame, function: Thing, receiver: Thing | None, given: Given) -> None:
    """Give a function's parameters what a call passes, or their defaults."""
    arguments = getattr(function.node, "args", None)
    if not isinstance(arguments, ast.arguments):
        return
    positional = [*arguments.posonlyargs, *arguments.args]
    passed = list(given.positional)
    if receiver is not None and not is_static(function.node):
        if positional:
            frame.variables[positional[0].arg] = receiver
            positional = positional[1:]
        else:
            passed = [receiver, *passed]
    named = dict(given.named)
    for index, item in enumerate((*positional, *arguments.kwonlyargs)):
        if index < min(len(passed), len(positional)):
            frame.variables[item.arg] = passed[index]
        elif item.arg in named:
            frame.variables[item.arg] = named.pop(item.arg)
        else:
            default = _default_of(arguments, item)
            frame.variables[item.arg] = _left_open(
                given, default, frame, by_position=index < len(positional)
            )
    if arguments.vararg is not None:
        rest = passed[len(positional) :]
        several: Value = Many(tuple(rest))
        if given.more is not None:
            several = combined(given.more, *rest)
        frame.variables[arguments.vararg.arg] = several
    if arguments.kwarg is not None:
        entries: Value = dictionary_of([Known(key) for key in named], list(named.values()))
        if given.more_named is not None:
            entries = combined(given.more_named, *named.values())
        frame.variables[arguments.kwarg.arg] = entries


def _left_open(given: Given, default: ast.expr | None, frame: Frame, *, by_position: bool) -> Value:
    """A parameter that the call does not name: its default, or what is unpacked."""
    unpacked = [item for item in (given.more if by_position else None, given.more_named) if item]
    if unpacked:
        # Without a default it certainly comes from what is unpacked.
        return NOTHING_KNOWN if default is not None else combined(*unpacked)
    if isinstance(default, ast.Constant) and not frame.is_root:
        return Known(default.value)
    return NOTHING_KNOWN


def _default_of(arguments: ast.arguments, parameter: ast.arg) -> ast.expr | None:
    for item, default in _defaults(arguments):
        if item is parameter:
            return default
    return None


def _defaults(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    first = len(positional) - len(arguments.defaults)
    yield from zip(positional[first:], arguments.defaults, strict=True)
    yield from zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)


def is_static(node: ast.AST | None) -> bool:
    """Whether a function is a static method."""
    return has_decorator(node, "staticmethod")


def has_decorator(node: ast.AST | None, name: str) -> bool:
    """Whether a function carries one of Python's own decorators."""
    return isinstance(node, FUNCTIONS) and any(
        isinstance(item, ast.Name) and item.id == name for item in node.decorator_list
    )
