"""What is known of libraries, and how people name things: the tables in ``knowledge/``, each with its sources.

`functions.json` says what library functions give or do, `methods.json` what methods do whose object is not known,
`conventions.json` what names mean where nobody can see what is behind them. Adding to them touches no code.
`operations` reads `collectives.json`.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def table(name: str) -> dict[str, Any]:
    """A table as it is written."""
    text = files("ranksafe.rank_flow").joinpath(f"knowledge/{name}.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@cache
def functions_that(effect: str) -> frozenset[str]:
    """Canonical names of the library functions, or names of environment variables, with one effect."""
    return frozenset(
        name for group in table("functions")["groups"] if group["effect"] == effect
        for name in group["names"]
    )  # fmt: skip


@cache
def methods_that(effect: str) -> frozenset[str]:
    """Names of methods with one effect."""
    groups = table("methods")["groups"]
    return frozenset(next(group["names"] for group in groups if group["effect"] == effect))


@cache
def families(effect: str) -> dict[str, tuple[str, ...]]:
    """The families of random generators that a function belongs to or seeds, by its canonical name."""
    return {
        name: tuple(group.get("families", (group.get("family"),)))
        for group in table("functions")["groups"]
        if group["effect"] == effect
        for name in group["names"]
    }


@cache
def named(convention: str) -> frozenset[str]:
    """The names that mean something by convention."""
    return frozenset(table("conventions")["conventions"][convention]["names"])
