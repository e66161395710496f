"""Generators of random numbers that have a seed of their own: what is drawn differs where the seed does."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.values import (
    SAME,
    Known,
    Sameness,
    Thing,
    Unknown,
    Value,
    combined,
    origin_of,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.run import Run

_SEEDED = frozenset(
    {
        "random.Random", "numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.Generator",
        "numpy.random.PCG64", "numpy.random.MT19937", "numpy.random.Philox", "numpy.random.SeedSequence",
    }
)  # fmt: skip
"""Made from a seed; each process draws one where none is given."""
_SEED = "__seed__"
_FILLING = frozenset(
    {"normal_", "uniform_", "random_", "bernoulli_", "exponential_", "geometric_", "log_normal_"}
)
_SEEDING = ("seed", "set_seed", "seed_everything", "seed_all", "fix_seed", "set_random_seed")
_QUESTIONS = frozenset({"initial_seed", "get_state", "getstate", "bit_generator", "spawn_key"})


def made_generator(run: Run, node: ast.Call, name: str, arguments: list[Value]) -> Value | None:
    """``torch.Generator()``, ``random.Random(seed)`` and their like; None for other calls."""
    if name == "torch.Generator":
        # Its default seed is a constant.
        seed: Value = SAME
    elif name in _SEEDED:
        seed = _seed_of(run, arguments[0]) if arguments else _own(run, node)
        if isinstance(seed, Known) and seed.constant is None:
            seed = _own(run, node)
    else:
        return None
    made = Thing("random", type="", node=node, module=run.module)
    run.set_attribute(made, _SEED, seed)
    return made


def drawn_from(run: Run, node: ast.Call, word: str, generator: Thing, arguments: list[Value]) -> Value:  # fmt: skip
    """What a method of a generator returns."""
    if word in ("manual_seed", "seed"):
        seed = arguments[0] if arguments else _own(run, node)
        run.set_attribute(generator, _SEED, seed)
        return generator
    if word in ("set_state", "setstate", "jumped", "spawn"):
        run.set_attribute(generator, _SEED, combined(*arguments))
        return generator
    found = _numbers(generator, run)
    return replace(found, sameness=Sameness.UNKNOWN) if word in _QUESTIONS else found


def given_generator(run: Run, node: ast.Call, arguments: list[Value]) -> Unknown | None:
    """What is drawn with ``generator=``; None where the process's own generator draws."""
    keywords = zip(node.keywords, arguments[len(node.args) :], strict=True)
    for keyword, value in keywords:
        if keyword.arg != "generator" or (isinstance(value, Known) and value.constant is None):
            continue
        if isinstance(value, Thing) and value.kind == "random":
            return _numbers(value, run)
        return Unknown(value.sameness if value.sameness.varies else Sameness.UNKNOWN, value.origin)
    return None


def drawn_by_process(run: Run, node: ast.Call, name: str, arguments: list[Value]) -> Value:
    """What ``random.random()`` and its like draw from the generator of the process, and what seeding it returns.

    A file that seeds it gives all ranks one seed, unless it is seen to give each its own.
    """
    library, _, last = name.rpartition(".")
    if last == "seed":
        own = not arguments or any(item.sameness.varies for item in arguments)
        run.seeds[library] = own or bool(arguments and arguments[0] == Known(None))
        return SAME
    if last in ("default_rng", "getstate", "get_state", "setstate", "set_state"):
        return Unknown(Sameness.UNKNOWN)
    own_seed = run.seeds.get(library)
    if own_seed is None:
        own_seed = not any(run.module.calls_written(word) for word in _SEEDING)
    if not own_seed:
        return Unknown(Sameness.UNKNOWN)
    return Unknown(Sameness.DATA, run.origin(node, Sameness.DATA))


def drawn_in_place(run: Run, node: ast.Call, word: str, arguments: list[Value]) -> Unknown | None:
    """What ``x.normal_()`` and its like fill a tensor with; None for other methods."""
    if word not in _FILLING:
        return None
    drawn = given_generator(run, node, arguments)
    if drawn is None and run.seeded_by_rank:
        return Unknown(Sameness.DATA, run.origin(node, Sameness.DATA))
    return Unknown(Sameness.UNKNOWN) if drawn is None else drawn


def _numbers(generator: Thing, run: Run) -> Unknown:
    seed = run.attribute(generator, _SEED)
    if seed is None or not seed.sameness.varies:
        # Ranks with one seed have the same numbers as long as all have drawn as many.
        return Unknown(Sameness.UNKNOWN)
    return Unknown(Sameness.DATA, origin_of(seed))


def draws_its_own(run: Run, value: Value) -> bool:
    """Whether a value is a generator with a seed of this rank."""
    return (
        isinstance(value, Thing) and value.kind == "random" and _numbers(value, run).sameness.varies
    )


def _own(run: Run, node: ast.Call) -> Value:
    return Unknown(Sameness.DATA, run.origin(node, Sameness.DATA))


def _seed_of(run: Run, given: Value) -> Value:
    if isinstance(given, Thing) and given.kind == "random":
        return run.attribute(given, _SEED) or SAME
    return given
