"""Calls that seed global random numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.semantics.module import Module

SEEDING: Final = frozenset(
    {"manual_seed", "manual_seed_all", "seed", "seed_everything", "seed_all", "set_seed", "set_random_seed"}
    | {"init_seeds"}
)  # fmt: skip
"""Last segments of such calls, functions that people write for it included."""


def seeds_of(module: Module) -> Iterator[ast.expr]:
    """The numbers that the file seeds global random numbers with."""
    for name in SEEDING:
        for call in module.calls_written(name):
            if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call):
                continue  # ``torch.Generator().manual_seed(0)``
            yield from (call.args or [keyword.value for keyword in call.keywords])[:1]
