"""Paths through a function: what is known where they meet again, and how they leave."""

from __future__ import annotations

from typing import Any

from ranksafe.semantics.rank_flow.joined_values import joined
from ranksafe.semantics.rank_flow.traces import Branch, Exit
from ranksafe.semantics.rank_flow.values import NOTHING_KNOWN, Missing, Thing, Value


def joined_states(first: Any, second: Any, test: Value) -> Any:
    """What is known, variables and attributes, where two paths meet again; ``test`` chose between them."""
    variables = _joined_names(first[0], second[0], test)
    heap = {}
    for thing in {*first[1], *second[1]}:
        heap[thing] = _joined_names(first[1].get(thing, {}), second[1].get(thing, {}), test)
    return variables, heap


def _joined_names(
    first: dict[str, Value], second: dict[str, Value], test: Value
) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name in {*first, *second}:
        one, other = first.get(name), second.get(name)
        if one is None or other is None:
            only = one if one is not None else other
            assert only is not None
            if isinstance(only, Missing):
                found[name] = only
                continue
            # Assigned on one path: unknown on the other.
            found[name] = joined(only, NOTHING_KNOWN, test) if not isinstance(only, Thing) else only
        elif one is other:
            found[name] = one
        else:
            found[name] = joined(one, other, test)
    return found


def same_knowledge(first: Any, second: Any) -> bool:
    """Whether two snapshots say the same."""
    return bool(first[0] == second[0] and first[1] == second[1])


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
