"""Operators: computed where both sides are known."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ranksafe.semantics.rank_flow.class_attributes import Member
from ranksafe.semantics.rank_flow.expressions.amounts import apart
from ranksafe.semantics.rank_flow.expressions.containers import LONGEST
from ranksafe.semantics.rank_flow.expressions.entries import merged_entries
from ranksafe.semantics.rank_flow.expressions.slices import pads
from ranksafe.semantics.rank_flow.library_calls.element_types import FLOATING
from ranksafe.semantics.rank_flow.library_calls.files import negated
from ranksafe.semantics.rank_flow.library_calls.pure_functions import constant_of
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    Known,
    Many,
    OfFile,
    Sameness,
    Share,
    Thing,
    Unknown,
    Value,
    combined,
    elementwise,
    origin_of,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

_HIGHEST_BIT = 64
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: lambda left, right: left << right if right < _HIGHEST_BIT else NotImplemented,
    ast.RShift: operator.rshift,
    ast.Pow: lambda left, right: left**right if abs(right) < _HIGHEST_BIT else NotImplemented,
}
_SET_BY_TORCHRUN = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE"})
_SHORTER = (Share.ROUNDED, Share.UNEVEN)
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: lambda left, right: _is_one(left, right),
    ast.IsNot: lambda left, right: not _is_one(left, right),
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}


class Operators:
    """Evaluates arithmetic and comparisons."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def binary(self, node: ast.BinOp) -> Value:
        """``a + b`` and its like."""
        left, right = (
            self._interpreter.expressions.value(node.left),
            self._interpreter.expressions.value(node.right),
        )
        if isinstance(left, Known) and isinstance(right, Known):
            if left.origin is not None and isinstance(node.op, (ast.Mod, ast.FloorDiv)):
                self._run.depends_on_parity = True
            return _computed(_BINARY.get(node.op.__class__), left, right)
        if isinstance(node.op, ast.Mult):
            items, times = (left, right) if isinstance(left, Many) else (right, left)
            if (
                isinstance(items, Many)
                and isinstance(times, Known)
                and isinstance(times.constant, int)
            ):
                if 0 <= times.constant * len(items.items) <= LONGEST:
                    return Many(items.items * times.constant)
        if isinstance(node.op, ast.BitOr) and isinstance(left, Unknown):
            merged = merged_entries(left, right)
            if merged is not None:
                return merged
        if isinstance(node.op, ast.Mod) and isinstance(left, Known) and isinstance(right, Many):
            # ``"part %d of %d" % (rank, size)``
            whole = constant_of(right)
            if whole is not None and isinstance(left.constant, str):
                return _computed(operator.mod, left, whole)
        if isinstance(node.op, ast.Add) and isinstance(left, Many) and isinstance(right, Many):
            return Many(left.items + right.items)
        return self._shared_out(node, left, right)

    def _shared_out(self, node: ast.BinOp, left: Value, right: Value) -> Value:
        """Arithmetic with something unknown; remembers how a length is cut into parts."""
        found = elementwise(left, right)
        if isinstance(node.op, ast.Div):
            found = replace(found, dtype=FLOATING)
        if isinstance(node.op, ast.Add) and (pads(node.left) or pads(node.right)):
            return replace(found, share=Share.EVEN, length=Sameness.UNKNOWN, shape=Sameness.UNKNOWN)
        if isinstance(node.op, ast.Sub) and isinstance(right, Unknown):
            # What is missing in a share makes it even.
            return replace(found, share=None if right.share in _SHORTER else found.share)
        by_size = isinstance(right, Known) and right.constant == self._run.world.size
        if by_size and isinstance(node.op, (ast.Mod, ast.FloorDiv)) and self._run.world.size > 1:
            rounded_up = isinstance(node.op, ast.FloorDiv) and isinstance(
                node.left, (ast.UnaryOp, ast.BinOp)
            )
            return replace(found, share=Share.ROUNDED if rounded_up else Share.EVEN)
        return found

    def unary(self, node: ast.UnaryOp) -> Value:
        """``not a``, ``-a``."""
        value = self._interpreter.expressions.value(node.operand)
        if isinstance(value, Known):
            if isinstance(node.op, ast.Not):
                return Known(not value.constant, value.origin)
            if isinstance(node.op, ast.USub) and isinstance(value.constant, (int, float)):
                return Known(-value.constant, value.origin)
        if isinstance(node.op, ast.Not) and isinstance(value, Many):
            return Known(not value.items)
        if isinstance(node.op, ast.Not) and isinstance(value, Unknown):
            if value.length is Sameness.DATA and not value.decides:
                return Unknown(Sameness.DATA, value.origin, decides=True)
        found = combined(value)
        return negated(found) if isinstance(node.op, ast.Not) else found

    def compare(self, node: ast.Compare) -> Value:
        """``a == b``, ``a in b`` and their like."""
        values = [
            self._interpreter.expressions.value(node.left),
            *(self._interpreter.expressions.value(item) for item in node.comparators),
        ]
        if len(values) > 2:
            return self._chained(node, values)
        if len(values) == 2:
            left, right = values
            own = self._own_comparison(node, left, right)
            if own is not None:
                return own
            test = _COMPARE.get(node.ops[0].__class__)
            if isinstance(left, Known):
                plain = _plain(right)
                if plain is not None:
                    self._note_comparison(left, plain)
                    return _computed(test, left, plain)
            if isinstance(node.ops[0], (ast.Is, ast.IsNot)) and isinstance(right, Known):
                if right.constant is None and isinstance(left, (Thing, Many)):
                    return Known(isinstance(node.ops[0], ast.IsNot))
            if isinstance(node.ops[0], (ast.Is, ast.IsNot)) and isinstance(left, Unknown):
                if left.there is not None and isinstance(right, Known) and right.constant is None:
                    return Known(isinstance(node.ops[0], ast.IsNot), left.there)
                if left.none_apart and isinstance(right, Known) and right.constant is None:
                    return Unknown(Sameness.DATA, left.origin, decides=True)
                if isinstance(right, Known) and isinstance(right.constant, Member):
                    return replace(combined(left, right), decides=True)
            if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
                # What is there is decided by the code, not by the data.
                return replace(NOTHING_KNOWN, file=_either(left))
            if isinstance(node.ops[0], (ast.In, ast.NotIn)) and isinstance(left, Known):
                if left.origin is None:
                    if right.sameness is Sameness.DATA and left.constant.__class__ in (int, float):
                        # A number among the data, not the name of a column.
                        return replace(combined(right), decides=True)
                    return NOTHING_KNOWN
                return Unknown(left.sameness, left.origin, decides=True)
            if isinstance(node.ops[0], (ast.In, ast.NotIn)):
                return replace(combined(*values), decides=True)
            truths = replace(elementwise(*values), decides=True)
            truths = apart(node.ops[0], left, right, truths)
            return replace(truths, dtype="bool") if any(map(_is_tensor, values)) else truths
        return replace(combined(*values), decides=True)

    def _chained(self, node: ast.Compare, values: list[Value]) -> Value:
        """``0 <= rank < 2``: true where all parts are."""
        parts: list[Value] = []
        for index, test in enumerate(node.ops):
            left, right = _plain(values[index]), _plain(values[index + 1])
            if left is None or right is None:
                return replace(combined(*values), decides=True)
            self._note_comparison(left, right)
            parts.append(_computed(_COMPARE.get(test.__class__), left, right))
        if not all(isinstance(part, Known) for part in parts):
            return replace(combined(*values), decides=True)
        holds = all(part.constant for part in parts if isinstance(part, Known))
        return Known(holds, origin_of(*parts))

    def _own_comparison(self, node: ast.Compare, left: Value, right: Value) -> Value | None:
        """What the project's own ``__contains__`` and ``__eq__`` say, and dictionaries of known keys; else None."""
        test = node.ops[0]
        objects = self._interpreter.objects
        if isinstance(test, (ast.In, ast.NotIn)) and isinstance(left, Known):
            asked = self._run.module.qualified_name(node.comparators[0])
            if asked == "os.environ" and left.constant in _SET_BY_TORCHRUN:
                return Known(isinstance(test, ast.In))
        if isinstance(test, (ast.In, ast.NotIn)):
            found = objects.special(right, "__contains__", node, left)
            if found is None and isinstance(right, Unknown) and isinstance(left, Known):
                if (
                    right.entries is not None
                    and right.steps is not None
                    and left.origin is not None
                ):
                    inside = left.constant in dict(right.entries)
                    return Known(inside is isinstance(test, ast.In), left.origin)
            denied = isinstance(test, ast.NotIn)
        elif isinstance(test, (ast.Eq, ast.NotEq)):
            found = objects.special(left, "__eq__", node, right)
            denied = isinstance(test, ast.NotEq)
        else:
            return None
        if isinstance(found, Known):
            return Known(bool(found.constant) is not denied, found.origin)
        return found

    def _note_comparison(self, left: Known, right: Known) -> None:
        if left.origin is None and right.origin is None:
            return
        for side in (left, right):
            if side.origin is None:
                named = side.constant if isinstance(side.constant, tuple) else (side.constant,)
                for item in named:
                    if isinstance(item, int) and item < 16:
                        self._run.largest_rank = max(self._run.largest_rank, item)


def _is_one(left: Any, right: Any) -> bool:
    """``is``: members of enumerations are made once."""
    return left is right or (isinstance(left, Member) and left == right)


def computed(operation: ast.operator, left: Known, right: Known) -> Value:
    """The result of an operator on two constants."""
    return _computed(_BINARY.get(operation.__class__), left, right)


def _computed(operation: Callable[[Any, Any], Any] | None, left: Known, right: Known) -> Value:
    if operation is None:
        return combined(left, right)
    a, b = left.constant, right.constant
    if isinstance(a, (str, tuple)) and isinstance(b, int) and operation is operator.mul:
        return combined(left, right)
    try:
        result = operation(a, b)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return combined(left, right)
    if result is NotImplemented or isinstance(result, complex):
        return combined(left, right)
    if isinstance(result, int) and abs(result) > 10**12:
        return combined(left, right)
    return Known(result, origin_of(left, right))


def _plain(value: Value) -> Known | None:
    """A value as a constant: a tuple of constants is one."""
    if isinstance(value, Known):
        return value
    if isinstance(value, Many) and all(isinstance(item, Known) for item in value.items):
        constants = tuple(item.constant for item in value.items)  # type: ignore[union-attr]
        return Known(constants, origin_of(*value.items))
    return None


def _either(value: Value) -> OfFile | None:
    """For ``value is None``: it may be None because a file is missing."""
    return OfFile.EITHER if isinstance(value, Unknown) and value.file is not None else None


def _is_tensor(value: Value) -> bool:
    """Whether a value certainly is a tensor with dimensions, which is compared item by item."""
    if not isinstance(value, Unknown) or not value.dtype or value.dtype == "count":
        return False
    return isinstance(value.shape, tuple) and bool(value.shape)
