"""Python's own functions of numbers, texts and lengths."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.expressions.containers import dictionary_of
from ranksafe.semantics.rank_flow.expressions.entries import EMPTY_DICTIONARY
from ranksafe.semantics.rank_flow.library_calls.pure_functions import of_pure
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    Known,
    Many,
    Missing,
    Sameness,
    Share,
    Thing,
    Unknown,
    Value,
    combined,
    evenness,
    length_of,
    origin_of,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

_USES_VALUE = frozenset(
    {
        "builtins.len",
        "builtins.list",
        "builtins.sorted",
        "builtins.sum",
        "builtins.enumerate",
        "builtins.iter",
    }
    | {
        "builtins.max",
        "builtins.min",
        "builtins.int",
        "builtins.float",
        "builtins.dict",
        "builtins.set",
    }
    | {"os.path.join", "builtins.open"}
)

_DICTIONARIES = frozenset({"builtins.dict", "collections.OrderedDict"})


def of_builtin(
    interpreter: Interpreter, node: ast.Call, name: str, arguments: list[Value]
) -> Value | None:
    """What such a call returns; None for other calls."""
    run = interpreter.run
    last = name.rpartition(".")[2]
    if name in _USES_VALUE:
        for value, expression in zip(arguments, node.args, strict=False):
            run.none_used(value, expression)
    pure = of_pure(name, arguments, bool(node.keywords))
    if pure is not None:
        return pure
    if name == "builtins.len" and arguments:
        return _length(arguments[0])
    if name in _DICTIONARIES:
        return _dictionary(node, arguments)
    if name in ("builtins.int", "builtins.str", "builtins.bool", "builtins.float") and arguments:
        return _converted(last, arguments[0])
    if last in ("ModuleList", "Sequential") and len(arguments) == 1:
        return arguments[0]
    if name in ("builtins.max", "builtins.min") and len(arguments) > 1:
        numbers = [item.constant for item in arguments if isinstance(item, Known)]
        if len(numbers) == len(arguments) and all(
            isinstance(item, (int, float)) for item in numbers
        ):
            chosen = max(numbers) if last == "max" else min(numbers)
            return Known(chosen, origin_of(*arguments))
    if name in ("builtins.max", "builtins.min", "builtins.abs", "builtins.divmod"):
        found = combined(*arguments)
        return _cut_off(found) if last == "min" and len(arguments) > 1 else found
    if last == "setattr" and len(arguments) == 3 and isinstance(arguments[0], Thing):
        named = arguments[1].constant if isinstance(arguments[1], Known) else None
        if isinstance(named, str):
            run.set_attribute(arguments[0], named, arguments[2])
        return Known(None)
    if name in (
        "builtins.print",
        "builtins.isinstance",
        "builtins.hasattr",
        "builtins.getattr",
    ):
        if last == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            held = _attribute(interpreter, node, arguments)
            if held is not None:
                return held
            by_word = interpreter.expressions.by_word(str(node.args[1].value), node)
            return by_word if by_word is not None else NOTHING_KNOWN
        if last == "hasattr" and len(node.args) > 1 and isinstance(arguments[0], Thing):
            asked = getattr(node.args[1], "value", None)
            if isinstance(interpreter.run.attribute(arguments[0], str(asked)), Missing):
                # Code that asks goes another way without it.
                interpreter.run.set_attribute(arguments[0], str(asked), NOTHING_KNOWN)
        return NOTHING_KNOWN
    return None


def _attribute(interpreter: Interpreter, node: ast.Call, arguments: list[Value]) -> Value | None:
    """``getattr(state, "stop")`` of an object whose attribute is known; else None."""
    base, name = arguments[0], str(getattr(node.args[1], "value", ""))
    if not isinstance(base, Thing):
        return None
    held = interpreter.run.attribute(base, name)
    if held is None:
        return interpreter.objects.property_value(base, name, node)
    return None if isinstance(held, Missing) else held


def _dictionary(node: ast.Call, arguments: list[Value]) -> Value | None:
    """``dict(stop=flag)``, ``dict(known, stop=flag)``, ``dict([("stop", flag)])``; None for others."""
    if not arguments:
        return EMPTY_DICTIONARY
    entries: list[tuple[Value | None, Value]] = []
    for value in arguments[: len(node.args)]:
        pairs = value.items if isinstance(value, Many) else None
        if isinstance(value, Unknown) and value.entries is not None:
            entries += [(Known(key), item) for key, item in value.entries]
        elif pairs and all(isinstance(pair, Many) and len(pair.items) == 2 for pair in pairs):
            entries += [(pair.items[0], pair.items[1]) for pair in pairs if isinstance(pair, Many)]
        elif evenness(value).varies:
            # As many entries as what it is made of.
            found = combined(*arguments)
            return replace(found, length=evenness(value), origin=origin_of(value) or found.origin)
        else:
            return None
    named = arguments[len(node.args) :]
    for keyword, value in zip(node.keywords, named, strict=True):
        if keyword.arg is None:
            if not isinstance(value, Unknown) or value.entries is None:
                return None
            entries += [(Known(key), item) for key, item in value.entries]
        else:
            entries.append((Known(keyword.arg), value))
    return dictionary_of([key for key, _ in entries], [value for _, value in entries])


def _length(value: Value) -> Value:
    length = length_of(value)
    if isinstance(value, Unknown) and value.own_item and length is Sameness.UNKNOWN:
        return Unknown(Sameness.DATA, value.origin)
    if isinstance(length, Sameness):
        # How much data a rank has: no rank counts by it.
        share = Share.UNEVEN if length is Sameness.RANK else None
        return Unknown(length, origin_of(value) if length.varies else None, share=share)
    of_dictionary = isinstance(value, Unknown) and value.entries is not None
    return Known(length, value.origin if isinstance(value, Many) or of_dictionary else None)


def _converted(kind: str, value: Value) -> Value:
    if isinstance(value, Known):
        try:
            made = {"int": int, "str": str, "bool": bool, "float": float}[kind](value.constant)
        except (TypeError, ValueError):
            return combined(value)
        return Known(made, value.origin)
    return combined(value)


def _cut_off(value: Unknown) -> Unknown:
    """A bound that ends where the data does: shares that were rounded up are not as long any more."""
    return replace(value, share=Share.UNEVEN) if value.share is Share.ROUNDED else value
