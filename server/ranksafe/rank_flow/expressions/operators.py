"""Operators: computed where both sides are known; some evaluate a side only if the other lets them."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

from ranksafe.rank_flow.expressions.slices import pads
from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.traces import Branch, Decision, matters
from ranksafe.rank_flow.values import (
    LONGEST,
    NOTHING_KNOWN,
    Abstract,
    Constant,
    Object,
    Sequence,
    Share,
    Value,
    Varies,
    combined,
    elementwise,
    is_none,
    is_small,
    joined,
    listed,
    origin_of,
    truth_of,
)

_REPEATED = (str, bytes, tuple)
_WIDE_FORMAT = re.compile(r"\*|\d{4}")
"""A format with a width or precision of 1000 and more, or with one that is given (or with any such number)."""
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
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}


def binary(run: Run, node: ast.BinOp) -> Value:
    """``a + b`` and its like."""
    left, right = (run.value(node.left), run.value(node.right))
    if isinstance(left, Constant) and isinstance(right, Constant):
        if left.origin is not None and isinstance(node.op, (ast.Mod, ast.FloorDiv)):
            run.depends_on_parity = True
        return _computed(_BINARY.get(node.op.__class__), left, right)
    if isinstance(node.op, ast.Mult):
        items, times = (left, right) if isinstance(left, Sequence) else (right, left)
        if (
            isinstance(items, Sequence)
            and isinstance(times, Constant)
            and isinstance(times.constant, int)
        ):
            if 0 <= times.constant * len(items.items) <= LONGEST:
                return listed(items.items * times.constant)
    if isinstance(node.op, ast.Add) and isinstance(left, Sequence) and isinstance(right, Sequence):
        return listed(left.items + right.items)
    return _shared_out(run, node, left, right)


def _shared_out(run: Run, node: ast.BinOp, left: Value, right: Value) -> Value:
    """Arithmetic with something unknown; remembers how a length is cut into parts."""
    found = elementwise(left, right)
    size = run.world.size
    if isinstance(node.op, ast.Add):
        if pads(node.left) or pads(node.right):
            return found.changed(share=Share.EVEN, length=Varies.PERHAPS, shape=Varies.PERHAPS)
        added = [item.constant for item in (left, right) if isinstance(item, Constant)]
        if found.share is None and size > 1 and (size in added or size - 1 in added):
            # ``(n + world_size - 1) // world_size`` rounds up.
            return found.changed(share=Share.ROUNDED)
    if isinstance(node.op, ast.Sub) and isinstance(right, Abstract):
        # What is missing in a share makes it even.
        return found.changed(share=None if (right.share or 0) > Share.EVEN else found.share)
    by_size = isinstance(right, Constant) and right.constant == size > 1
    if by_size and isinstance(node.op, (ast.Mod, ast.FloorDiv)):
        rounded_up = isinstance(node.op, ast.FloorDiv) and found.share is Share.ROUNDED
        return found.changed(share=Share.ROUNDED if rounded_up else Share.EVEN)
    return found


def unary(run: Run, node: ast.UnaryOp) -> Value:
    """``not a``, ``-a``."""
    value = run.value(node.operand)
    if isinstance(value, Constant):
        if isinstance(node.op, ast.Not):
            return Constant(not value.constant, value.origin)
        if isinstance(node.op, ast.USub) and isinstance(value.constant, (int, float)):
            return Constant(-value.constant, value.origin)
    if isinstance(node.op, ast.Not) and isinstance(value, Sequence):
        return Constant(not value.items)
    found = combined(value)
    elsewhere = value.elsewhere if isinstance(value, Abstract) else None
    if isinstance(node.op, ast.Not) and elsewhere is not None:
        return found.changed(elsewhere=Constant(not elsewhere.constant, elsewhere.origin))
    if isinstance(node.op, ast.USub) and found.share is None:
        # ``-(-n // world_size)`` rounds up.
        return found.changed(share=Share.ROUNDED)
    return found


def compare(run: Run, node: ast.Compare) -> Value:
    """``a == b``, ``a in b`` and their like."""
    values = [run.value(node.left), *(run.value(item) for item in node.comparators)]
    if len(values) == 2:
        left, right = values
        test = _COMPARE.get(node.ops[0].__class__)
        if isinstance(left, Constant):
            plain = _plain(right)
            if plain is not None:
                _note_comparison(run, left, plain)
                return _computed(test, left, plain)
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)) and isinstance(right, Constant):
            if is_none(right) and isinstance(left, (Object, Sequence)):
                return Constant(isinstance(node.ops[0], ast.IsNot))
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            if isinstance(left, Abstract) and left.none_somewhere and is_none(right):
                return Abstract(Varies.BY_DATA, left.origin, decides=True)
            # Whether a value is there at all is usually up to the code, not to a rank's data.
            return NOTHING_KNOWN
        if isinstance(node.ops[0], (ast.In, ast.NotIn)) and isinstance(left, Constant):
            if left.origin is None:
                return NOTHING_KNOWN
            return Abstract(left.varies, left.origin, decides=True)
    return combined(*values).changed(decides=True)


def _note_comparison(run: Run, left: Constant, right: Constant) -> None:
    if left.origin is None and right.origin is None:
        return
    for side in (left, right):
        if side.origin is None:
            named = side.constant if isinstance(side.constant, tuple) else (side.constant,)
            for item in named:
                if isinstance(item, int) and item < 16:
                    run.largest_rank = max(run.largest_rank, item)


def computed(operation: ast.operator, left: Constant, right: Constant) -> Value:
    """The result of an operator on two constants."""
    return _computed(_BINARY.get(operation.__class__), left, right)


def _computed(
    operation: Callable[[Any, Any], Any] | None, left: Constant, right: Constant
) -> Value:
    if operation is None:
        return combined(left, right)
    a, b = left.constant, right.constant
    if not (is_small(a) and is_small(b) and _stays_small(operation, a, b)):
        return combined(left, right)
    try:
        result = operation(a, b)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return combined(left, right)
    return Constant(result, origin_of(left, right)) if is_small(result) else combined(left, right)


def _stays_small(operation: Callable[[Any, Any], Any], a: Any, b: Any) -> bool:
    """Whether the result of an operation on small constants is known to be no giant before it is made."""
    if operation is operator.mul:
        return not isinstance(a, _REPEATED) and not isinstance(b, _REPEATED)
    if operation is operator.mod and isinstance(a, (str, bytes)):
        text = a if isinstance(a, str) else a.decode("latin-1")
        return _WIDE_FORMAT.search(text) is None
    return True


def _plain(value: Value) -> Constant | None:
    """A value as a constant: a tuple of constants is one."""
    if isinstance(value, Constant):
        return value
    if isinstance(value, Sequence) and all(isinstance(item, Constant) for item in value.items):
        constants = tuple(item.constant for item in value.items)  # type: ignore[union-attr]
        return Constant(constants, origin_of(*value.items))
    return None


def bool_operation(run: Run, node: ast.BoolOp) -> Value:
    """``a and b``, ``a or b``: the rest is not evaluated once the result is certain."""
    stops_at = isinstance(node.op, ast.Or)
    decided: list[Value] = []
    undecided: list[Value] = []
    for operand in node.values:
        value = _guarded(run, operand, node, undecided) if undecided else run.value(operand)
        truth = truth_of(value)
        if truth is None:
            undecided.append(value)
        elif truth is stops_at:
            origin = origin_of(value, *decided)
            if isinstance(value, Constant) and not undecided:
                return Constant(value.constant, origin)
            return Constant(stops_at, origin)
        else:
            decided.append(value)
    if undecided:
        found = combined(*undecided)
        origin = origin_of(*decided)
        if origin is None or origin.varies is not Varies.BY_RANK or found.varies.certain:
            return found
        return found.changed(elsewhere=Constant(stops_at, origin))
    last = decided[-1]
    return Constant(last.constant, origin_of(*decided)) if isinstance(last, Constant) else last


def _guarded(run: Run, operand: ast.expr, node: ast.BoolOp, before: list[Value]) -> Value:
    """An operand that is evaluated only if the ones before let it."""
    outer, run.items = run.items, []
    value = run.value(operand)
    items, run.items = run.items, outer
    if matters(items):
        outer.append(Branch(run.place(node), combined(*before), items, []))
    return value


def conditional(run: Run, node: ast.IfExp) -> Value:
    """``a if test else b``."""
    test = run.value(node.test)
    truth = truth_of(test)
    if truth is not None:
        if test.varies.certain:
            run.items.append(Decision(run.place(node), truth, test))
        value = run.value(node.body if truth else node.orelse)
        if test.varies.certain and isinstance(value, Constant) and value.origin is None:
            # For None: the other ranks have the other arm's value.
            other = (
                node if not isinstance(node.orelse if truth else node.body, ast.Constant) else None
            )
            none = other if value.constant is None else None
            return Constant(value.constant, origin_of(test), instead_of=none)
        if test.varies.certain and isinstance(value, Abstract) and _may_be_bound(value):
            return value.changed(share=Share.UNEVEN)
        return value
    outer = run.items
    arms: list[tuple[Value, list[Any]]] = []
    for arm in (node.body, node.orelse):
        run.items = []
        value = run.value(arm)
        arms.append((value, run.items))
    run.items = outer
    if any(matters(items) for _, items in arms):
        outer.append(Branch(run.place(node), test, arms[0][1], arms[1][1]))
    return joined(arms[0][0], arms[1][0], test)


def _may_be_bound(value: Abstract) -> bool:
    """Whether a value may be the bound of a range: not what comes out of data or tests."""
    return not value.decides and value.varies is not Varies.BY_DATA
