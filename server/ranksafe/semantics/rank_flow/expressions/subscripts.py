"""Subscripts: items, slices and masks, and the shares of data that they make."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.expressions.entries import entry_at
from ranksafe.semantics.rank_flow.expressions.groups import group_at
from ranksafe.semantics.rank_flow.expressions.slices import sliced
from ranksafe.semantics.rank_flow.library_calls import device_meshes
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
                    return Known(item.constant, index.origin)
                return item
        mesh = device_meshes.part(base, index)
        if mesh is not None:
            return mesh
        group = group_at(base, index) if isinstance(base, Unknown) else None
        if group is not None:
            return group
        entry = entry_at(base, index) if isinstance(base, Unknown) else None
        if entry is not None:
            return entry
        axis = one_axis(base, index) if isinstance(base, Unknown) else None
        if axis is not None:
            return axis
        if isinstance(base, Unknown) and isinstance(base.each, Unknown) and base.share is not None:
            # One of the parts of np.array_split.
            part = base.each
            return replace(part, origin=origin_of(index) or part.origin)
        found = combined(base, index)
        if isinstance(node.slice, ast.Tuple):
            return self._in_dimensions(found, node.slice)
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
