"""Python's own functions of numbers, texts and lengths."""

from __future__ import annotations

import ast

from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.tables import functions_that
from ranksafe.rank_flow.values import (
    NOTHING_KNOWN,
    Abstract,
    Constant,
    Sequence,
    Share,
    Value,
    Varies,
    combined,
    is_small,
    length_of,
    origin_of,
)


def of_builtin(run: Run, node: ast.Call, name: str, arguments: list[Value]) -> Value | None:
    """What such a call returns; None for other calls."""
    last = name.rpartition(".")[2]
    if name in functions_that("uses-value"):
        for value, expression in zip(arguments, node.args, strict=False):
            run.none_used(value, expression)
    if name == "builtins.len" and arguments:
        return _length(arguments[0])
    if name in ("builtins.int", "builtins.str", "builtins.bool", "builtins.float") and arguments:
        return _converted(last, arguments[0])
    if last in ("ModuleList", "Sequential") and len(arguments) == 1:
        return arguments[0]
    if name in ("builtins.max", "builtins.min") and len(arguments) > 1:
        numbers = [item.constant for item in arguments if isinstance(item, Constant)]
        if len(numbers) == len(arguments) and all(
            isinstance(item, (int, float)) for item in numbers
        ):
            chosen = max(numbers) if last == "max" else min(numbers)
            return Constant(chosen, origin_of(*arguments))
    if name in ("builtins.max", "builtins.min", "builtins.abs", "builtins.divmod"):
        found = combined(*arguments)
        # ``min(start + share, len(data))`` cuts the last share off.
        cut = last == "min" and found.share is Share.ROUNDED
        return found.changed(share=Share.UNEVEN) if cut else found
    if name == "builtins.print" or name in functions_that("asks structure"):
        if last == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            by_word = run.by_word(str(node.args[1].value), node)
            return by_word if by_word is not None else NOTHING_KNOWN
        return NOTHING_KNOWN
    return None


def _length(value: Value) -> Value:
    length = length_of(value)
    if isinstance(value, Abstract) and value.own_item and length is Varies.PERHAPS:
        return Abstract(Varies.BY_DATA, value.origin)
    if isinstance(length, Varies):
        # How much data a rank has: no rank counts by it.
        share = Share.UNEVEN if length is Varies.BY_RANK else None
        return Abstract(length, origin_of(value) if length.certain else None, share=share)
    return Constant(length, value.origin if isinstance(value, Sequence) else None)


def _converted(kind: str, value: Value) -> Value:
    if isinstance(value, Constant):
        try:
            made = {"int": int, "str": str, "bool": bool, "float": float}[kind](value.constant)
        except (TypeError, ValueError, OverflowError):
            return combined(value)
        return Constant(made, value.origin) if is_small(made) else combined(value)
    return combined(value)
