"""Subscripts: items, slices and masks, and the shares of data that they make."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.expressions.amounts import chosen_item
from ranksafe.semantics.rank_flow.expressions.entries import entry_at, has_no_entry
from ranksafe.semantics.rank_flow.expressions.groups import group_at
from ranksafe.semantics.rank_flow.expressions.slices import sliced
from ranksafe.semantics.rank_flow.library_calls import device_meshes
from ranksafe.semantics.rank_flow.library_calls.layers import by_rows
from ranksafe.semantics.rank_flow.library_calls.parts import chosen_by_rank
from ranksafe.semantics.rank_flow.library_calls.selections import asks_rows, one_axis, rows_of
from ranksafe.semantics.rank_flow.values import (
    Known,
    Many,
    Sameness,
    Thing,
    Unknown,
    Value,
    combined,
    origin_of,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter


class Subscripts:
    """Evaluates subscripts."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def value(self, node: ast.Subscript) -> Value:
        """``xs[i]``, ``xs[a:b]``."""
        run = self._run
        if run.module.qualified_name(node.value) == "os.environ":
            return self._interpreter.calls.environment_variable(node.slice, node)
        tensor = asks_rows(node)
        if tensor is not None:
            rows = rows_of(self._interpreter.expressions.value(tensor))
            if rows.sameness.varies:
                return rows
        base = self._interpreter.expressions.value(node.value)
        run.none_used(base, node.value)
        if isinstance(node.slice, ast.Slice):
            return self._slice(base, node.slice)
        index = self._interpreter.expressions.value(node.slice)
        own = self._interpreter.objects.special(base, "__getitem__", node, index)
        if own is not None:
            return own
        if isinstance(index, Thing) and index.kind == "slice":
            return sliced(base, list(index.detail), run.world.size)
        if isinstance(base, Many) and isinstance(index, Known) and isinstance(index.constant, int):
            if -len(base.items) <= index.constant < len(base.items):
                item = base.items[index.constant]
                if index.origin is not None and isinstance(item, Known):
                    return chosen_item(base, Known(item.constant, index.origin))
                if index.origin is not None:
                    return chosen_by_rank(base, item, index, run.world.size, run.world.rank)
                return item
        if isinstance(node.ctx, ast.Load):
            self._look_for(node, base, index)
        mesh = device_meshes.part(base, index)
        if mesh is not None:
            return mesh
        group = group_at(base, index) if isinstance(base, Unknown) else None
        if group is not None:
            return group
        entry = self._constant(node, base, index)
        if entry is None and isinstance(base, Unknown):
            entry = entry_at(base, index)
        if entry is not None:
            return entry
        axis = one_axis(base, index) if isinstance(base, Unknown) else None
        if axis is not None:
            return axis
        if isinstance(base, Unknown) and isinstance(base.each, Thing):
            if base.each.kind == "wrapped":
                return base.each
        if isinstance(base, Unknown) and isinstance(base.each, Unknown) and base.share is not None:
            # One of the parts of np.array_split: those that the code names are the same on all ranks.
            part = base.each
            if isinstance(index, Known) and index.origin is None:
                return combined(base)
            return replace(part, origin=origin_of(index) or part.origin)
        found = combined(base, index)
        if isinstance(node.slice, ast.Tuple):
            return self._in_dimensions(_with_rows(base, found, node.slice), node.slice)
        of_truths = isinstance(index, Unknown) and index.dtype == "bool"
        if index.sameness is Sameness.DATA and (of_truths or self._is_mask(node.slice)):
            # A mask keeps as many elements as it has ones.
            return replace(
                found,
                shape=Sameness.DATA,
                length=Sameness.DATA,
                origin=origin_of(index) or found.origin,
            )
        return found

    def _look_for(self, node: ast.Subscript, base: Value, index: Value) -> None:
        """Whether this rank has the entry of a dictionary; items of items may have been changed unseen."""
        direct = isinstance(node.value, (ast.Name, ast.Attribute, ast.Call))
        if direct and isinstance(base, Unknown) and has_no_entry(base, index):
            self._run.lacks(node)
        else:
            self._run.had.add(id(node))

    def _constant(self, node: ast.Subscript, base: Value, index: Value) -> Value | None:
        """``SIZES["train"]`` of a table that the file writes once and names as a constant; None for other items."""
        table = node.value
        if (
            not isinstance(table, ast.Name)
            or not table.id.isupper()
            or not isinstance(base, Unknown)
        ):
            return None
        if base.entries is None or not isinstance(index, Known) or index.origin is not None:
            return None
        if self._interpreter.expressions.variable(table.id) is not None:
            return None
        found = dict(base.entries).get(index.constant)
        return found if isinstance(found, Known) else None

    def _slice(self, base: Value, node: ast.Slice) -> Value:
        bounds = [
            None if item is None else self._interpreter.expressions.value(item)
            for item in (node.lower, node.upper, node.step)
        ]
        return sliced(base, bounds, self._run.world.size)

    def _in_dimensions(self, found: Unknown, node: ast.Tuple) -> Unknown:
        """``xs[:, :longest]``: where one end of a slice differs, so does the shape."""
        for item in node.elts:
            if not isinstance(item, ast.Slice):
                continue
            ends = [
                self._interpreter.expressions.value(end)
                for end in (item.lower, item.upper)
                if end is not None
            ]
            differ = [end for end in ends if end.sameness is Sameness.DATA]
            if len(differ) == 1:
                origin = origin_of(*differ) or found.origin
                return replace(found, shape=Sameness.DATA, origin=origin)
        return found

    def _is_mask(self, node: ast.expr) -> bool:
        """Whether an index is a comparison's result."""
        if isinstance(node, ast.UnaryOp):
            return self._is_mask(node.operand)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            return self._is_mask(node.left)
        if isinstance(node, ast.Name):
            return any(
                self._is_mask(item)
                for item in self._run.module.flow.assigned_values(node)
                if not isinstance(item, ast.Name)
            )
        return isinstance(node, ast.Compare)


def _with_rows(base: Value, found: Unknown, index: ast.Tuple) -> Unknown:
    """``xs[:, 0]``: as many rows as before."""
    first = index.elts[0] if index.elts else None
    whole = isinstance(first, ast.Slice) and first.lower is first.upper is first.step is None
    return by_rows(base, found) if whole else found
