"""What is known of torch, transformers, trl, accelerate and their relatives without reading them on the user's machine.

The table is generated from the running packages by ``tools/generate_library_table.py`` and holds, for the versions
named in it, every alias of a public name (``transformers.trainer.Trainer``) and every class's public ancestors.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files


@cache
def _table() -> dict[str, dict[str, list[str] | str]]:
    text = files("ranksafe.semantics").joinpath("library_table.json").read_text("utf-8")
    loaded: dict[str, dict[str, list[str] | str]] = json.loads(text)
    return loaded


@cache
def canonical(name: str) -> str:
    """The public name for any alias of it: ``torch.nn.modules.linear.Linear`` -> ``torch.nn.Linear``; attributes of
    an alias keep theirs; unknown names stay as they are."""
    aliases = _table()["aliases"]
    head, rest = name, ""
    while head:
        public = aliases.get(head)
        if isinstance(public, str):
            return public + rest
        head, _, last = head.rpartition(".")
        rest = f".{last}{rest}" if last else rest
    return name


@cache
def ancestors_of(name: str) -> tuple[str, ...]:
    """Public ancestors of a library class, nearest first; empty for what is not known."""
    return tuple(_table()["classes"].get(name, ()))


def is_known_class(name: str) -> bool:
    """Whether ``name`` is a class of the table."""
    return name in _table()["classes"]


@cache
def exported_by(module: str, name: str) -> bool:
    """Whether ``from module import *`` of a known library brings ``name``."""
    table = _table()
    full = f"{module}.{name}"
    return full in table["classes"] or full in table["aliases"] or full in table["functions"]


_LIBRARIES = frozenset(
    {
        "builtins",
        "os",
        "sys",
        "typing",
        "numpy",
        "torch",
        "transformers",
        "accelerate",
        "trl",
        "peft",
        "datasets",
    }
    | {
        "jax",
        "functools",
        "types",
        "json",
        "math",
        "random",
        "time",
        "logging",
        "pathlib",
        "dataclasses",
    }
)


def is_library(name: str) -> bool:
    """Whether a dotted name certainly belongs to a library, so that the project need not be asked.

    A folder of the project may carry the name of a less known package; of these it will not.
    """
    return name.partition(".")[0] in _LIBRARIES
