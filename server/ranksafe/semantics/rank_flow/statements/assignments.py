"""Assignments: what names, attributes and items are bound to."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.expressions.entries import with_entry
from ranksafe.semantics.rank_flow.expressions.groups import with_group
from ranksafe.semantics.rank_flow.expressions.operators import computed
from ranksafe.semantics.rank_flow.expressions.slices import pads
from ranksafe.semantics.rank_flow.library_calls.growing_dictionaries import with_key
from ranksafe.semantics.rank_flow.library_calls.iteration import element
from ranksafe.semantics.rank_flow.library_calls.layers import has_uneven_shape
from ranksafe.semantics.rank_flow.passed_in import opened
from ranksafe.semantics.rank_flow.trainer_control import asked_for
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    Known,
    Many,
    Share,
    Thing,
    Unknown,
    Value,
    combined,
    part_of,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter
    from ranksafe.semantics.rank_flow.run import Frame


class Assignments:
    """Binds targets of assignments and loops."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def assign(self, node: ast.Assign) -> bool:
        """``a = b = x``."""
        value = self._interpreter.expressions.value(node.value)
        for target in node.targets:
            if isinstance(target, (ast.Tuple, ast.List)):
                self._run.none_used(value, node.value)
            self.bind(target, value)
        return True

    def annotated(self, node: ast.AnnAssign) -> bool:
        """``a: int = x``."""
        if node.value is not None:
            value = self._interpreter.expressions.value(node.value)
            if isinstance(value, Unknown):
                value = self._interpreter.library_objects.annotated(node) or value
            self.bind(node.target, value)
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
        if isinstance(node.op, ast.Add) and self._fills(target, before, added):
            return True
        if isinstance(before, Known) and isinstance(added, Known):
            self.bind(target, computed(node.op, before, added))
        elif isinstance(before, Many) and isinstance(added, Many) and isinstance(node.op, ast.Add):
            self.bind(target, Many(before.items + added.items))
        elif isinstance(node.op, ast.Add) and pads(node.value):
            self.bind(target, replace(combined(before, added), share=Share.EVEN))
        else:
            self.bind(target, combined(before, added))
        return True

    def _fills(self, target: ast.expr, before: Value, added: Value) -> bool:
        """``xs += ys`` for lists."""
        lists = isinstance(before, Many) or (
            isinstance(added, Many) and isinstance(before, Unknown) and bool(self._run.around)
        )
        return lists and self._interpreter.lists.add(target, before, added, several=True)

    def bind(self, target: ast.expr, value: Value) -> None:
        """Give a target a value."""
        run = self._run
        if isinstance(target, ast.Name):
            outer = self._declared_outside(target.id)
            if outer is not None:
                unsure = run.inside.uncertain or run.frame.loops
                outer.variables[target.id] = combined(value, NOTHING_KNOWN) if unsure else value
                return
            run.frame.variables[target.id] = value
            run.made_here(None, target.id)
            if target.id in self._interpreter.functions.declared(run.frame.function, ast.Global):
                unsure = run.inside.uncertain or run.frame.loops
                run.globals[id(run.module), target.id] = NOTHING_KNOWN if unsure else value
        elif isinstance(target, ast.Attribute):
            base = self._interpreter.expressions.value(target.value)
            base = opened(self._interpreter, target.value, base) or base
            if isinstance(base, Thing):
                run.set_attribute(base, target.attr, value)
                run.made_here(base, target.attr)
                asked_for(self._interpreter, base, target, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, Thing) and value.kind == "object":
                value = self._interpreter.objects.unpacked(value, len(target.elts))
            value = _unpacked(value, target.elts)
            for index, part in enumerate(target.elts):
                if isinstance(part, ast.Starred):
                    inner = self._item(value, index, len(target.elts))
                    self.bind(part.value, inner if isinstance(inner, Many) else combined(value))
                else:
                    self.bind(part, self._item(value, index, len(target.elts)))
        elif isinstance(target, ast.Subscript) and (
            self._grows(target, value) or self._bind_group(target, value)
        ):
            pass
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

    def _declared_outside(self, name: str) -> Frame | None:
        """The call around whose variable a nested function assigns: ``nonlocal name``."""
        frame = self._run.frame
        if frame.outer is None or name not in self._interpreter.functions.declared(
            frame.function, ast.Nonlocal
        ):
            return None
        outer: Frame | None = frame.outer
        while outer is not None and name not in outer.variables:
            outer = outer.outer
        return outer

    def _grows(self, target: ast.Subscript, value: Value) -> bool:
        """``losses[key] = loss`` on the ranks whose data has such a loss; False for other items."""
        if not isinstance(target.value, ast.Name):
            return False
        before = self._run.frame.variables.get(target.value.id)
        grown = None if before is None else with_key(self._run, target, before, value)
        if grown is None:
            return False
        self._run.frame.variables[target.value.id] = grown
        return True

    def _bind_group(self, target: ast.Subscript, value: Value) -> bool:
        """``groups[key] = group``; whether the container was a dictionary of groups."""
        if not isinstance(target.value, (ast.Name, ast.Attribute)):
            return False
        if isinstance(target.value, ast.Name):
            before = self._interpreter.expressions.variable(target.value.id)
        else:
            before = self._interpreter.expressions.value(target.value)
        if not isinstance(before, Unknown):
            return False
        if not before.groups and before.entries is not None and not _is_group(value):
            self.bind(
                target.value,
                with_entry(before, self._interpreter.expressions.value(target.slice), value),
            )
            return True
        if before.groups is None:
            return False
        after = with_group(before, self._interpreter.expressions.value(target.slice), value)
        if after.groups is None:
            after = replace(combined(before, value), length=after.length, groups=None)
        after = replace(after, entries=None)
        self.bind(target.value, after)
        return True

    def _item(self, value: Value, index: int, count: int) -> Value:
        if isinstance(value, Many) and len(value.items) == count:
            return value.items[index]
        if isinstance(value, Unknown) and isinstance(value.each, Unknown) and value.share is None:
            if value.each.length.varies or has_uneven_shape(value.each):
                # ``rows, columns = torch.where(mask)``, ``first, second = both.chunk(2)``
                return value.each
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


def _is_group(value: Value) -> bool:
    return isinstance(value, Thing) and value.kind == "group"


def _unpacked(value: Value, targets: list[ast.expr]) -> Value:
    """``first, *rest = values``: one value for each target."""
    starred = [index for index, item in enumerate(targets) if isinstance(item, ast.Starred)]
    if not isinstance(value, Many) or len(starred) != 1 or len(value.items) < len(targets) - 1:
        return value
    start = starred[0]
    end = len(value.items) - (len(targets) - start - 1)
    items = value.items
    return Many((*items[:start], Many(items[start:end]), *items[end:]))


def _with_item(before: Many, index: Value, value: Value) -> Value:
    if isinstance(index, Known) and isinstance(index.constant, int):
        if 0 <= index.constant < len(before.items):
            items = list(before.items)
            items[index.constant] = value
            return Many(tuple(items))
    return combined(before, value)
