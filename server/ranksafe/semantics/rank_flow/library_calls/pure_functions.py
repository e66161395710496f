"""Functions and methods without effects, of values that are known: computed as Python computes them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ranksafe.semantics.rank_flow.values import (
    Known,
    Many,
    Value,
    origin_of,
    truth_of,
)

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs, "divmod": divmod, "round": round, "pow": pow, "sum": sum, "chr": chr, "ord": ord, "hex": hex,
    "bin": bin, "max": max, "min": min, "repr": repr, "format": format,
}  # fmt: skip
_LARGEST = 64
_TEXT = frozenset(
    {
        "lower", "upper", "strip", "lstrip", "rstrip", "startswith", "endswith", "replace", "split", "rsplit",
        "join", "format", "zfill", "isdigit", "isnumeric", "title", "capitalize", "removeprefix", "removesuffix",
        "partition", "rpartition", "count", "find", "rfind", "index", "ljust", "rjust", "center", "isalpha",
        "isupper", "islower", "casefold", "splitlines",
    }
)  # fmt: skip
_NUMBER = frozenset({"bit_length", "is_integer", "bit_count"})
_OPERATORS: dict[str, Callable[..., Any]] = {
    name: getattr(operator, name)
    for name in ("eq", "ne", "lt", "le", "gt", "ge", "add", "sub", "mul", "mod", "floordiv", "not_", "and_", "or_")
}  # fmt: skip


def of_pure(name: str, arguments: list[Value], named: bool) -> Value | None:
    """What a function of Python returns; None where an argument is not known, or for other calls."""
    owner, _, last = name.rpartition(".")
    if named or not arguments:
        return None
    if owner == "builtins" and last in ("any", "all") and len(arguments) == 1:
        return _quantified(last, arguments[0])
    table = (
        _FUNCTIONS
        if owner == "builtins"
        else _OPERATORS
        if owner in ("operator", "_operator")
        else {}
    )
    function = table.get(last)
    if function is None:
        return None
    return _computed(function, arguments)


def of_known_method(receiver: Value, word: str, arguments: list[Value]) -> Value | None:
    """What a method of a text or number returns, where all arguments are known; else None."""
    if not isinstance(receiver, Known):
        return None
    text = isinstance(receiver.constant, str) and word in _TEXT
    number = isinstance(receiver.constant, (int, float)) and word in _NUMBER
    if not text and not number:
        return None
    return _computed(lambda first, *rest: getattr(first, word)(*rest), [receiver, *arguments])


def constant_of(value: Value) -> Known | None:
    """A value as one constant: a list whose items are known is one, a tuple."""
    if isinstance(value, Known):
        return value
    if isinstance(value, Many) and len(value.items) <= _LARGEST:
        items = [constant_of(item) for item in value.items]
        if all(item is not None for item in items):
            constants = tuple(item.constant for item in items if item is not None)
            return Known(constants, origin_of(value, *(item for item in items if item is not None)))
    return None


def of_constant(constant: Any, *made_of: Value) -> Value:
    """A result: a list or tuple as values of its own."""
    origin = origin_of(*made_of)
    if isinstance(constant, (list, tuple)) and len(constant) <= _LARGEST:
        return Many(tuple(Known(item, origin) for item in constant))
    return Known(constant, origin)


def _computed(function: Callable[..., Any], arguments: list[Value]) -> Value | None:
    known = [constant_of(item) for item in arguments]
    constants = [item.constant for item in known if item is not None]
    if len(constants) < len(known) or any(_is_long(item) for item in constants):
        return None
    try:
        result = function(*constants)
    except Exception:
        return None
    if isinstance(result, (int, float)) and abs(result) > 10**12:
        return None
    if isinstance(result, str) and len(result) > 1000:
        return None
    return of_constant(result, *arguments)


def _is_long(constant: Any) -> bool:
    return isinstance(constant, str) and len(constant) > 1000


def _quantified(word: str, values: Value) -> Value | None:
    """``any`` and ``all`` of a list whose length is known: certain once one item decides."""
    if not isinstance(values, Many):
        return None
    truths = [truth_of(item) for item in values.items]
    decides = word == "any"
    if decides in truths:
        deciding = [
            item for item, truth in zip(values.items, truths, strict=True) if truth is decides
        ]
        # Certain on all ranks as soon as one item is the same on all of them.
        same = any(not item.sameness.varies for item in deciding)
        return Known(decides, None if same and values.origin is None else origin_of(values))
    if None in truths:
        return None
    return Known(not decides, origin_of(values))
