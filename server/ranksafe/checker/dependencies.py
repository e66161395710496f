"""What the result for one unit may depend on: names of things that units give, and that queries read.

The keys are those that `ranksafe.semantics.module.Module` notes while it answers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.semantics.facts import UnitFacts
from ranksafe.semantics.module import Module, ReadKey
from ranksafe.semantics.units import ClassUnit, Unit

_QUERY_OF_CONTEXT = {
    ast.Store: "attribute stores",
    ast.Load: "attribute loads",
    ast.Del: "attribute stores",
}
FACTS: ReadKey = ("facts",)
KEYS = "keys"
"""The name under which a unit keeps what others may read of it."""
ANSWERS = ("facts", "rank flow")
"""What a unit keeps beside its findings, each with what it read."""


def keys_of(units: list[Unit]) -> set[ReadKey]:
    """What others may have read of these units."""
    keys: set[ReadKey] = set()
    for unit in units:
        keys |= _own_keys(unit)
        if isinstance(unit, ClassUnit):
            keys |= keys_of(unit.members)
    return keys


def _own_keys(unit: Unit) -> frozenset[ReadKey]:
    kept: frozenset[ReadKey] | None = unit.results.get(KEYS)
    if kept is None:
        # Asked when the unit comes and again when it goes.
        kept = unit.results[KEYS] = frozenset(_find_keys(unit))
    return kept


def _find_keys(unit: Unit) -> Iterator[ReadKey]:
    owner = unit.owner
    yield from (("unit", unit.identity), ("all",), ("called", "*"))
    yield from keys_of_name(unit)
    if owner is None:
        if any(isinstance(node, (ast.If, ast.Assert)) for node in unit.nodes):
            yield ("exits",)
    else:
        yield from (("method", name) for name in unit.bound_names)
        yield from (("class", owner.identity), ("unit", owner.identity))
        for name, nodes in unit.attributes.items():
            for context in {node.ctx.__class__ for node in nodes}:  # type: ignore[attr-defined]
                yield (_QUERY_OF_CONTEXT[context], owner.identity, name)
    names = {node.id for node in unit.by_kind.get(ast.Name, ())}  # type: ignore[attr-defined]
    yield from (("loads", name) for name in names)
    yield from (("called", name) for name in unit.calls())
    for statement in unit.by_kind.get(ast.Global, ()):
        yield from (("global", name) for name in statement.names)  # type: ignore[attr-defined]


def keys_of_name(unit: Unit) -> set[ReadKey]:
    """What those have read who know which names a unit binds, and did not look inside."""
    if unit.owner is None:
        return {("binding", name) for name in unit.bound_names}
    return {("member", unit.owner.identity, name) for name in unit.bound_names}


def drop_stale_answers(module: Module, affected: set[ReadKey]) -> None:
    """Forget the facts and the rank flow of units that read something in ``affected``."""
    affected = affected | module.changed_text_answers()
    for unit in module.all_units():
        for task in ANSWERS:
            cached = unit.results.get(task)
            if cached is not None and not affected.isdisjoint(cached[1]):
                del unit.results[task]


def facts_fingerprint(module: Module) -> object:
    """Changes whenever `Module.facts` would, and when a unit that contributes a place to them is edited."""
    seen = []
    for unit in module.all_units():
        facts = module.facts_of(unit)
        if facts.is_entry or facts.imports or _has_places(facts):
            identity = unit.identity if facts.is_entry or _has_places(facts) else 0
            seen.append((identity, facts.is_entry, tuple(sorted(facts.imports))))
    return tuple(seen)


def _has_places(facts: UnitFacts) -> bool:
    return bool(
        facts.launcher_evidence
        or facts.accelerator
        or facts.trainers
        or facts.data_parallel
        or facts.distributed_data_parallel
        or facts.visible_devices
    )
