"""Containers: displays and comprehensions."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ranksafe.semantics.rank_flow.expressions.entries import EMPTY_DICTIONARY, entries_of, keys_of
from ranksafe.semantics.rank_flow.expressions.groups import dictionary_of_groups
from ranksafe.semantics.rank_flow.library_calls.iteration import element
from ranksafe.semantics.rank_flow.traces import Loop, matters
from ranksafe.semantics.rank_flow.values import (
    Known,
    Many,
    Sameness,
    Thing,
    Unknown,
    Value,
    combined,
    length_of,
    origin_of,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

LONGEST = 64
"""Collections with more items are not followed item by item."""


class Containers:
    """Evaluates displays and comprehensions."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def display(self, node: ast.Tuple | ast.List | ast.Set) -> Value:
        """``(a, b)``, ``[a, b]``, ``{a, b}``."""
        items = [self._interpreter.expressions.value(item) for item in node.elts]
        if any(isinstance(item, ast.Starred) for item in node.elts):
            return combined(*items)
        return Many(tuple(items))

    def dictionary(self, node: ast.Dict) -> Value:
        """``{a: b}``."""
        values = [self._interpreter.expressions.value(item) for item in node.values]
        keys = [
            None if key is None else self._interpreter.expressions.value(key) for key in node.keys
        ]
        flat_keys: list[Value | None] = []
        flat_values: list[Value] = []
        for key, value in zip(keys, values, strict=True):
            if key is None and isinstance(value, Unknown) and value.entries is not None:
                flat_keys += [Known(name) for name, _ in value.entries]
                flat_values += [item for _, item in value.entries]
            else:
                flat_keys.append(key)
                flat_values.append(value)
        return dictionary_of(flat_keys, flat_values)

    def dictionary_comprehension(self, node: ast.DictComp) -> Value:
        """``{k: f(k) for k in ks}``, of keys that are known; of others what all entries have in common."""
        run = self._run
        source = self._interpreter.expressions.value(node.generators[0].iter)
        saved = dict(run.frame.variables)
        plain = len(node.generators) == 1 and not node.generators[0].ifs
        if plain and isinstance(source, Many) and len(source.items) <= LONGEST:
            keys: list[Value | None] = []
            values = []
            for index in range(len(source.items)):
                self._interpreter.assignments.bind_item(node.generators[0].target, source, index)
                keys.append(self._interpreter.expressions.value(node.key))
                values.append(self._interpreter.expressions.value(node.value))
            run.frame.variables = saved
            return dictionary_of(keys, values)
        sources_ = []
        for generator in node.generators:
            iterable = self._interpreter.expressions.value(generator.iter)
            iterable = self._interpreter.generators.iterated(iterable, generator.iter)
            sources_.append(iterable)
            self._interpreter.assignments.bind_each(generator.target, iterable)
        tests = [
            self._interpreter.expressions.value(test)
            for generator in node.generators
            for test in generator.ifs
        ]
        value = self._interpreter.expressions.value(node.value)
        self._interpreter.expressions.value(node.key)
        run.frame.variables = saved
        return combined(value, *sources_, *tests)

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Value:
        """``[f(x) for x in xs if x]``, and of sets and generators."""
        run = self._run
        saved = dict(run.frame.variables)
        outer = run.items
        sources_ = []
        conditions = []
        for generator in node.generators:
            iterable = self._interpreter.expressions.value(generator.iter)
            iterable = keys_of(self._interpreter.generators.iterated(iterable, generator.iter))
            sources_.append(iterable)
            self._interpreter.assignments.bind_each(generator.target, iterable)
            conditions += [self._interpreter.expressions.value(test) for test in generator.ifs]
        length = length_of(sources_[0])
        known = isinstance(length, int) and not isinstance(length, Sameness)
        if len(node.generators) == 1 and not conditions and known and length <= LONGEST:
            items = []
            for index in range(length):
                self._interpreter.assignments.bind_item(
                    node.generators[0].target, sources_[0], index
                )
                items.append(self._interpreter.expressions.value(node.elt))
            run.frame.variables = saved
            source = sources_[0]
            return Many(tuple(items), source.origin if isinstance(source, Many) else None)
        filtered = self._filtered(node, sources_)
        if filtered is not None:
            run.frame.variables = saved
            return filtered
        run.items = []
        element = self._interpreter.expressions.value(node.elt)
        inner, run.items = run.items, outer
        if matters(inner):
            count: Any = length
            run.items.append(
                Loop(run.place(node), count, inner, sources_[0], bool(run.inside.joined))
            )
        run.frame.variables = saved
        found = combined(element, *sources_, *conditions)
        if isinstance(element, Thing) and element.kind == "wrapped":
            found = replace(found, each=element)
        varies = max((item.sameness for item in conditions), default=Sameness.SAME)
        if node.generators[0].ifs and sources_[0].sameness is Sameness.DATA:
            varies = Sameness.DATA
        if varies.varies:
            origin = origin_of(*conditions) or found.origin
            return replace(found, length=varies, origin=origin)
        if len(node.generators) == 1 and not conditions and isinstance(length, Sameness):
            return replace(found, length=length)
        return found

    def _filtered(
        self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, sources_: list[Value]
    ) -> Many | None:
        """``[x for i, x in enumerate(xs) if i % world_size == rank]`` of items that are known; None for others."""
        source, tests = sources_[0], node.generators[0].ifs
        if len(sources_) > 1 or not tests or not isinstance(source, Many):
            return None
        items: list[Value] = []
        kept: list[Value] = []
        for index in range(len(source.items)):
            self._interpreter.assignments.bind_item(node.generators[0].target, source, index)
            with self._run.unnoticed():
                found = [self._interpreter.expressions.value(test) for test in tests]
                item = self._interpreter.expressions.value(node.elt)
            if not all(isinstance(test, Known) for test in found):
                return None
            kept += found
            if all(isinstance(test, Known) and test.constant for test in found):
                items.append(item)
        origin = origin_of(*kept)
        return Many(tuple(items), origin or source.origin) if len(source.items) <= LONGEST else None


def dictionary_of(keys: list[Value | None], values: list[Value]) -> Value:
    """A dictionary with these keys; None for what is unpacked and not known."""
    if not keys:
        return EMPTY_DICTIONARY
    if not all(isinstance(key, (Known, Many)) for key in keys):
        return combined(*values)
    found = combined(*values)
    # A loop over it gives the keys.
    each = Many(tuple(key for key in keys if key is not None))
    entries = entries_of(keys, values)
    return replace(
        found,
        length=Sameness.SAME,
        each=element(each),
        groups=dictionary_of_groups(keys, values),
        entries=entries,
        steps=len(keys) if entries is None else len(entries),
    )
