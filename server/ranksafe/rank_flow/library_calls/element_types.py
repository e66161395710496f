"""Element types of tensors: what creations, conversions and divisions say of them."""

from __future__ import annotations

import ast

from ranksafe.rank_flow.tables import methods_that
from ranksafe.rank_flow.values import Abstract, Constant, Sequence, Value

FLOATING = "floating"
"""Some floating-point type: what a division gives."""
_SAME_NAME = {
    "long": "int64", "int": "int32", "short": "int16", "float": "float32", "double": "float64",
    "half": "float16", "cfloat": "complex64",
}  # fmt: skip
_WHOLE = frozenset({"int64", "int32", "int16", "int8", "uint8", "bool"})


def named(attribute: str) -> str:
    """The type that ``torch.long`` and its like name."""
    return _SAME_NAME.get(attribute, attribute)


def differ(one: str, other: str) -> bool:
    """Whether two known types certainly are not the same."""
    if not one or not other:
        return False
    if FLOATING in (one, other):
        return one in _WHOLE or other in _WHOLE
    return one != other


def of_literals(value: Value) -> str:
    """The type of ``torch.tensor(value)``; empty where not all of it is written."""
    items = value.items if isinstance(value, Sequence) else (value,)
    kinds = set()
    for item in items:
        if isinstance(item, Sequence):
            kinds.add(of_literals(item))
        elif isinstance(item, Constant) and isinstance(item.constant, (bool, int, float)):
            kinds.add({bool: "bool", int: "int64", float: "float32"}[item.constant.__class__])
        else:
            return ""
    if "" in kinds or not kinds:
        return ""
    return next((kind for kind in ("float32", "int64", "bool") if kind in kinds), "")


def after_method(result: Value, node: ast.Call, word: str, receiver: Value) -> Value:
    """A method's result with the element type that the method gives or keeps."""
    if not isinstance(result, Abstract) or not isinstance(receiver, Abstract):
        return result
    dtype = ""
    asked = _asked(node)
    if word in methods_that("converts") and not node.args:
        dtype = named(word)
    elif word in ("to", "type") and asked is not None:
        dtype = asked
    elif word in methods_that("keeps element type"):
        dtype = receiver.dtype
    return result if dtype == result.dtype else result.changed(dtype=dtype)


def _asked(node: ast.Call) -> str | None:
    """The type among a call's arguments; empty where it may be among them, None where it is not."""
    given = [*node.args, *(item.value for item in node.keywords if item.arg in ("dtype", "other"))]
    for item in given:
        if isinstance(item, ast.Attribute) and isinstance(item.value, ast.Name):
            if item.value.id == "torch":
                return named(item.attr)
        if isinstance(item, ast.Constant) and isinstance(item.value, str):
            continue
        return ""
    return None
