"""Assignments: what names, attributes and items are bound to."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.expressions.operators import computed
from ranksafe.semantics.rank_flow.library_calls.iteration import element
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    Known,
    Many,
    Sameness,
    Thing,
    Unknown,
    Value,
    combined,
    part_of,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter


class Assignments:
    """Binds targets of assignments and loops."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def assign(self, node: ast.Assign) -> bool:
        """``a = b = x``."""
        value = self._interpreter.expressions.value(node.value)
        for target in node.targets:
            self.bind(target, value)
        return True

    def annotated(self, node: ast.AnnAssign) -> bool:
        """``a: int = x``."""
        if node.value is not None:
            self.bind(node.target, self._interpreter.expressions.value(node.value))
        return True

    def augmented(self, node: ast.AugAssign) -> bool:
        """``a += x``."""
        target = node.target
        if isinstance(target, ast.Name):
            load: ast.expr = ast.Name(target.id, ast.Load())
            before = self._interpreter.expressions.variable(target.id)
        else:
            load, before = target, None
        if before is None:
            before = (
                self._interpreter.expressions.value(load)
                if not isinstance(target, ast.Name)
                else NOTHING_KNOWN
            )
        added = self._interpreter.expressions.value(node.value)
        if isinstance(before, Known) and isinstance(added, Known):
            self.bind(target, computed(node.op, before, added))
        elif isinstance(before, Many) and isinstance(added, Many) and isinstance(node.op, ast.Add):
            self.bind(target, Many(before.items + added.items))
        else:
            self.bind(target, combined(before, added))
        return True

    def bind(self, target: ast.expr, value: Value) -> None:
        """Give a target a value."""
        run = self._run
        if isinstance(target, ast.Name):
            run.frame.variables[target.id] = value
        elif isinstance(target, ast.Attribute):
            base = self._interpreter.expressions.value(target.value)
            if isinstance(base, Thing):
                run.set_attribute(base, target.attr, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for index, part in enumerate(target.elts):
                if isinstance(part, ast.Starred):
                    self.bind(part.value, combined(value))
                else:
                    self.bind(part, self._item(value, index, len(target.elts)))
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            # ``found[0] = x``: the container may now differ where x does.
            before = self._interpreter.expressions.variable(target.value.id)
            if isinstance(before, Unknown) and value.sameness > before.sameness:
                self.bind(target.value, combined(before, value))
            elif isinstance(before, Many):
                self.bind(
                    target.value,
                    _with_item(before, self._interpreter.expressions.value(target.slice), value),
                )

    def _item(self, value: Value, index: int, count: int) -> Value:
        if isinstance(value, Many) and len(value.items) == count:
            return value.items[index]
        if isinstance(value, Unknown):
            return part_of(value)
        return NOTHING_KNOWN

    def bind_each(self, target: ast.expr, iterable: Value) -> None:
        """Give a loop's target what any step gives it."""
        self.bind(target, element(iterable))

    def bind_item(self, target: ast.expr, iterable: Value, index: int) -> None:
        """Give a loop's target the value of one step of known number."""
        if isinstance(iterable, Many):
            self.bind(target, iterable.items[index])
        elif isinstance(iterable, Known):
            self.bind(target, Known(iterable.constant[index], None))


def _with_item(before: Many, index: Value, value: Value) -> Value:
    if isinstance(index, Known) and isinstance(index.constant, int):
        if 0 <= index.constant < len(before.items):
            items = list(before.items)
            items[index.constant] = value
            return Many(tuple(items))
    return combined(before, value)
