"""Paths through a function: what is known where they meet again, and how they leave."""

from __future__ import annotations

from typing import Any

from ranksafe.rank_flow.run import State
from ranksafe.rank_flow.traces import Branch, Exit
from ranksafe.rank_flow.values import NOTHING_KNOWN, Object, Unassigned, Value, joined


def joined_states(first: State, second: State, test: Value) -> State:
    """What is known, variables and attributes, where two paths meet again; ``test`` chose between them."""
    heap = dict(first[1])
    for holder, attributes in second[1].items():
        mine = heap.get(holder)
        if mine is not attributes:
            heap[holder] = _joined_names(mine or {}, attributes, test)
    for holder in first[1].keys() - second[1].keys():
        heap[holder] = _joined_names(first[1][holder], {}, test)
    return _joined_names(first[0], second[0], test), heap


def _joined_names(
    first: dict[str, Value], second: dict[str, Value], test: Value
) -> dict[str, Value]:
    found = dict(first)
    for name, other in second.items():
        one = found.get(name)
        if one is not other:
            found[name] = _on_one_path(other, test) if one is None else joined(one, other, test)
    if len(found) > len(second):
        for name in first.keys() - second.keys():
            found[name] = _on_one_path(first[name], test)
    return found


def _on_one_path(only: Value, test: Value) -> Value:
    """What was assigned on one path: unknown on the other."""
    if isinstance(only, (Unassigned, Object)):
        return only
    return joined(only, NOTHING_KNOWN, test)


def same_knowledge(first: State, second: State) -> bool:
    """Whether the second snapshot says the same of all that is in the first."""
    return first[0].items() <= second[0].items() and first[1].items() <= second[1].items()


def exits_in(items: list[Any]) -> list[Exit]:
    """Exits of this level: those of loops inside belong to them."""
    found = []
    for item in items:
        if isinstance(item, Exit):
            found.append(item)
        elif isinstance(item, Branch):
            found += exits_in(item.then) + exits_in(item.otherwise)
    return found


def returns_in(items: list[Any]) -> bool:
    """Whether a path may return."""
    return any(item.kind == "return" for item in exits_in(items))
