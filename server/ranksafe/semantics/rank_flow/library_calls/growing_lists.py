"""Lists that loops fill: how long they are afterwards is as uneven as the loops and branches around the filling."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.expressions.containers import LONGEST
from ranksafe.semantics.rank_flow.expressions.slices import pads
from ranksafe.semantics.rank_flow.values import (
    Known,
    Many,
    Origin,
    Sameness,
    Share,
    Thing,
    Unknown,
    Value,
    combined,
    evenness,
    origin_of,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

FILLS = frozenset({"append", "extend", "appendleft", "extendleft"})
_SEVERAL = frozenset({"extend", "extendleft"})


class GrowingLists:
    """Adds to lists that are bound to variables and attributes."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def call(self, node: ast.Call, word: str, held: Value, arguments: list[Value]) -> bool:
        """``xs.append(x)`` and its like; False when nothing is known of where the list comes from."""
        if not isinstance(node.func, ast.Attribute) or not isinstance(held, (Many, Unknown)):
            return False
        target = node.func.value
        if word == "clear" and not arguments and isinstance(held, (Many, Unknown)):
            if isinstance(target, (ast.Name, ast.Attribute)) and self._made_in(target) is not None:
                self._interpreter.assignments.bind(target, Many(()))
                return True
        if word not in FILLS or len(arguments) != 1:
            return False
        if node.args and pads(node.args[0]) and word in _SEVERAL:
            if isinstance(target, (ast.Name, ast.Attribute)) and isinstance(held, Unknown):
                self._put(target, replace(combined(held, *arguments), share=Share.EVEN))
                return True
        return self.add(target, held, arguments[0], several=word in _SEVERAL)

    def add(self, target: ast.expr, held: Value, added: Value, *, several: bool) -> bool:
        """Add an item, or several, to the list that a target holds."""
        made_in = self._made_in(target)
        if made_in is None:
            return False
        around = [item for item in self._run.around if id(item.node) not in made_in]
        if not around and isinstance(held, Many):
            more = (added,) if not several else added.items if isinstance(added, Many) else None
            if more is not None and len(held.items) + len(more) <= LONGEST:
                self._put(target, Many(held.items + more, held.origin, held.length))
                return True
        worst, origin = Sameness.SAME, None
        for item in around:
            if item.even > worst:
                worst, origin = item.even, item.origin
        if any(_asks_for(item.node, target) for item in around):
            # Filled up until it is long enough.
            worst = Sameness.UNKNOWN
        if several and _as_long_as_data(added) > worst:
            worst, origin = _as_long_as_data(added), origin_of(added)
        fills_up = evenness(held).varies and not worst.varies
        found = combined(held, added)
        self._put(
            target,
            replace(
                found,
                length=worst if worst.varies else Sameness.UNKNOWN,
                origin=origin or held.origin or found.origin,
                share=Share.EVEN if fills_up else found.share,
                each=_rows_of(held, added, several=several),
            ),
        )
        return True

    def is_here(self, target: ast.expr) -> bool:
        """Whether what a target holds was made in the same loops and branches in which the code runs now."""
        made_in = self._made_in(target)
        around = [] if made_in is None else self._run.around
        if any(id(item.node) not in (made_in or ()) for item in around):
            return False
        return made_in is not None or not (self._run.frame.loops or self._run.inside.uncertain)

    def _made_in(self, target: ast.expr) -> frozenset[int] | None:
        """The loops and branches in which the list was made; None when it was not seen."""
        key = self._key(target)
        return None if key is None else self._run.made_in.get(key)

    def _key(self, target: ast.expr) -> tuple[int, str] | None:
        if isinstance(target, ast.Name):
            frame = self._run.frame
            while target.id not in frame.variables and frame.outer is not None:
                frame = frame.outer
            return id(frame), target.id
        if isinstance(target, ast.Attribute):
            holder = self._interpreter.expressions.value(target.value)
            return (id(holder), target.attr) if isinstance(holder, Thing) else None
        return None

    def _put(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            frame = self._run.frame
            while target.id not in frame.variables and frame.outer is not None:
                frame = frame.outer
            frame.variables[target.id] = value
        elif isinstance(target, ast.Attribute):
            holder = self._interpreter.expressions.value(target.value)
            if isinstance(holder, Thing):
                self._run.set_attribute(holder, target.attr, value)


def _asks_for(node: ast.AST, target: ast.expr) -> bool:
    """Whether the condition of a loop or branch looks at the list."""
    test = getattr(node, "test", None)
    if not isinstance(test, ast.expr):
        return False
    written = ast.unparse(target)
    kinds = (ast.Name, ast.Attribute)
    return any(isinstance(item, kinds) and ast.unparse(item) == written for item in ast.walk(test))


def _rows_of(held: Value, added: Value, *, several: bool) -> Value | None:
    """The tensors of a list, as long as all of them have as many rows as the rank's data makes; or wrapped models."""
    empty = isinstance(held, Many) and not held.items
    alike = isinstance(held, Unknown) and isinstance(held.each, Unknown)
    shaped = isinstance(added, Unknown) and added.shape is Sameness.DATA
    if isinstance(added, Thing) and added.kind == "wrapped":
        shaped = empty or (isinstance(held, Unknown) and isinstance(held.each, Thing))
        return added if shaped and not several else None
    return added if shaped and not several and (empty or alike) else None


def joined_rows(arguments: list[Value]) -> Sameness | None:
    """How the shape of ``torch.cat`` differs when the tensors of a list have as many rows as a rank's data makes."""
    given = arguments[0] if arguments else None
    each = given.each if isinstance(given, Unknown) else None
    return Sameness.DATA if isinstance(each, Unknown) and each.shape is Sameness.DATA else None


def stacked(arguments: list[Value]) -> Sameness | None:
    """How the shape of a tensor differs that is put together of a list's items; None where it is not known to."""
    if not arguments or isinstance(arguments[0], (Known, Thing)):
        return None
    even = evenness(arguments[0])
    return even if even.varies else None


def _as_long_as_data(added: Value) -> Sameness:
    """Whether the items that are added at once are as many on all ranks: those of the rank's own data are not."""
    if evenness(added).varies:
        return evenness(added)
    origin: Origin | None = added.origin
    own = added.sameness is Sameness.DATA and origin is not None
    return Sameness.DATA if own and origin.sameness is Sameness.RANK else Sameness.UNKNOWN  # type: ignore[union-attr]
