"""Every regular expression of the product, where it stands and how it is applied."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ranksafe.runs.explain.signatures.signature import signatures_about
from ranksafe.runs.rehearsals.doubt import standings

from tests.hardening.measured import ROOT

ONCE = frozenset({"match", "fullmatch"})
"""Ways to apply a pattern at one place; all others try it at every place of a text."""
_APPLIED = re.compile(
    r"\b(\w+)\.(match|fullmatch|search|finditer|findall|sub|subn|split|scanner)\b"
)
_FOLDERS = (("server", "ranksafe"), ("rules", "ranksafe_rules"))
_SIGNATURES = ROOT / "server" / "ranksafe" / "runs" / "explain" / "signatures"
_LEFT_OUT = (
    "inject",
    "proof",
    "proofs",
    "__main__",
    "login_node",
    "compute_node",
    "on_host",
    "agent",
)
"""Programs and parts of other processes: they are imported elsewhere, or do something when they are."""


@dataclass(frozen=True)
class Found:
    """A compiled pattern."""

    pattern: re.Pattern[Any]
    module: str
    applied: frozenset[str]
    """Methods that its module calls on a variable with its name; empty where that does not show."""


def all_patterns() -> list[Found]:
    """Module by module: compiled ones in variables and tables, and literals given to functions of ``re``."""
    found: dict[tuple[Any, int], Found] = {}
    for file, name in _modules():
        text = file.read_text("utf-8")
        if not re.search(r"\bre\.|Pattern|signature", text):
            continue
        applied: dict[str, set[str]] = {}
        for variable, method in _APPLIED.findall(text):
            applied.setdefault(variable, set()).add(method)
        module = importlib.import_module(name)
        for variable, value in list(vars(module).items()):
            for pattern in _in(value, set()):
                how = frozenset(applied.get(variable, ()))
                key = (pattern.pattern, pattern.flags)
                known = found.get(key)
                if known is None or (known.applied <= ONCE and not how <= ONCE):
                    found[key] = Found(pattern, name, how)
        for pattern, method in _literals(text):
            found.setdefault(
                (pattern.pattern, pattern.flags), Found(pattern, name, frozenset({method}))
            )
    for pattern in _in([signatures_about(file.stem) for file in _SIGNATURES.glob("*.json")], set()):
        key = (pattern.pattern, pattern.flags)
        found.setdefault(key, Found(pattern, "ranksafe.runs.explain.signatures", frozenset()))
    for pattern in (each.pattern for each in standings()):
        key = (pattern.pattern, pattern.flags)
        found.setdefault(key, Found(pattern, "ranksafe.runs.rehearsals.doubt", frozenset()))
    return list(found.values())


def _modules() -> Iterator[tuple[Path, str]]:
    for top, package in _FOLDERS:
        for file in sorted((ROOT / top / package).rglob("*.py")):
            parts = file.relative_to(ROOT / top).with_suffix("").parts
            if not any(part in _LEFT_OUT or part.startswith("ranksafe_re") for part in parts):
                yield file, ".".join(part for part in parts if part != "__init__")


def _in(value: Any, seen: set[int]) -> Iterator[re.Pattern[Any]]:
    if id(value) in seen or isinstance(value, ModuleType):
        return
    seen.add(id(value))
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        for pair in list(value.items()):
            yield from _in(pair, seen)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _in(item, seen)
    elif isinstance(value, type) and value.__module__.startswith("ranksafe"):
        for item in list(vars(value).values()):
            yield from _in(item, seen)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _in(getattr(value, field.name, None), seen)


def _literals(text: str) -> Iterator[tuple[re.Pattern[Any], str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            first = node.args[0]
            if ast.unparse(node.func.value) == "re" and isinstance(first, ast.Constant):
                if node.func.attr not in ("compile", "escape"):
                    yield re.compile(first.value), node.func.attr


# -- texts on which a pattern may take long


def hostile_texts(pattern: re.Pattern[Any], size: int) -> Iterator[Any]:
    """Texts of about ``size`` characters: each repeated part of the pattern repeated on and on, behind what has to
    stand before it and together with it, with an end that does not fit."""
    seen = set()
    tree = _parser().parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    for before, part in _repeated(tree, ""):
        for head, unit in ((before, part), ("", before + part)):
            if unit and (head, unit) not in seen:
                seen.add((head, unit))
                for tail in ("", "\0", "\n!"):
                    text = head + unit * (size // len(unit) + 1) + tail
                    is_bytes = isinstance(pattern.pattern, bytes)
                    yield text.encode("latin-1", "replace") if is_bytes else text


def _parser() -> Any:
    if sys.version_info >= (3, 11):
        return importlib.import_module("re._parser")
    return importlib.import_module("sre_parse")


_OF_CATEGORY = {
    "CATEGORY_DIGIT": "0",
    "CATEGORY_SPACE": " ",
    "CATEGORY_WORD": "a",
    "CATEGORY_NOT_WORD": ".",
}
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_MANY = 64


def _one(item: tuple[Any, Any]) -> str:
    """A character that a part of a pattern takes."""
    kind, value = str(item[0]), item[1]
    if kind == "LITERAL":
        return chr(value)
    if kind == "RANGE":
        return chr(value[0])
    if kind == "CATEGORY":
        return _OF_CATEGORY.get(str(value), "x")
    if kind == "IN":
        if str(value[0][0]) != "NEGATE":
            return _one(value[0])
        return next(
            (char for char in "xa0 ._-/:'\"(\n" if not any(_takes(i, char) for i in value[1:])), "~"
        )
    return "y" if kind == "NOT_LITERAL" and value == ord("x") else "x"


def _takes(item: tuple[Any, Any], char: str) -> bool:
    kind, value = str(item[0]), item[1]
    if kind == "LITERAL":
        return bool(chr(value) == char)
    if kind == "RANGE":
        return bool(value[0] <= ord(char) <= value[1])
    word = char.isalnum() or char == "_"
    classes = {
        "CATEGORY_DIGIT": char.isdigit(),
        "CATEGORY_SPACE": char.isspace(),
        "CATEGORY_WORD": word,
        "CATEGORY_NOT_DIGIT": not char.isdigit(),
        "CATEGORY_NOT_SPACE": not char.isspace(),
        "CATEGORY_NOT_WORD": not word,
    }
    return classes.get(str(value), False)


def _inner(kind: str, value: Any) -> list[Any]:
    """The patterns in a part of a pattern."""
    if kind in _REPEATS:
        return [value[2]]
    if kind == "SUBPATTERN":
        return [value[-1]]
    if kind == "BRANCH":
        return list(value[1])
    if kind in ("ASSERT", "ASSERT_NOT"):
        return [value[1]]
    return [value] if kind == "ATOMIC_GROUP" else []


def _shortest(parts: Any) -> str:
    text = ""
    for item in parts:
        kind, value = str(item[0]), item[1]
        if kind in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            text += _one(item)
        elif kind in _REPEATS:
            text += _shortest(value[2]) * min(value[0], _MANY)
        elif not kind.startswith("ASSERT") and _inner(kind, value):
            text += _shortest(_inner(kind, value)[0])
    return text


def _repeated(parts: Any, before: str) -> Iterator[tuple[str, str]]:
    """What stands before each part that may be repeated without end, and one of it, in all its forms."""
    for item in parts:
        kind, value = str(item[0]), item[1]
        if kind in _REPEATS and (str(value[1]) == "MAXREPEAT" or value[1] > _MANY):
            yield before, _shortest(value[2]) or "x"
            for form in _forms(value[2]):
                yield before, form
        for inner in _inner(kind, value):
            yield from _repeated(inner, before)
        before += _shortest([item])


def _forms(parts: Any) -> Iterator[str]:
    for item in parts:
        kind, value = str(item[0]), item[1]
        if kind == "IN":
            yield from (_one(part) for part in value if str(part[0]) != "NEGATE")
        elif kind == "BRANCH":
            yield from (_shortest(branch) or "x" for branch in value[1])
        elif kind == "SUBPATTERN":
            yield from _forms(value[-1])
