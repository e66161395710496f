"""What statements mention, told from their text alone: whether it can make ranks part, and what else they refer to.

Which words matter is the asker's knowledge (`RankWords`).
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from ranksafe.semantics.walking import FUNCTIONS, children


@dataclass(frozen=True)
class RankWords:
    """Names, attributes and strings that say that code communicates, wraps a model or asks for the rank."""

    always: frozenset[str]
    where_wrapped: frozenset[str]
    """Words that mean something else in most files, unless the file names something that wraps models."""
    wrappers: str
    """A regular expression for what wraps models."""

    @cached_property
    def fingerprint(self) -> str:
        """The same for the same words."""
        words = json.dumps([sorted(self.always), sorted(self.where_wrapped), self.wrappers])
        return hashlib.blake2b(words.encode(), digest_size=8).hexdigest()

    @cached_property
    def _wrapping(self) -> re.Pattern[str]:
        return re.compile(self.wrappers)

    def include(self, word: str, wrapping: bool) -> bool:
        """Whether a word is one of them; ``wrapping``: in a file that may wrap models."""
        return word in self.always or (wrapping and word in self.where_wrapped)

    def may_wrap(self, text: str) -> bool:
        """Whether a file names something that wraps models."""
        return self._wrapping.search(text) is not None


@dataclass(frozen=True, slots=True)
class Mentions:
    """What some statements mention."""

    always: bool
    where_wrapped: bool
    """Which of the words."""
    names: frozenset[str]
    """Dotted names that they read, as written; the attributes of anything begin with a dot (``.step``)."""

    def concern_ranks(self, wrapping: bool) -> bool:
        """Whether they can make ranks part by themselves; ``wrapping``: in a file that may wrap models."""
        return self.always or (wrapping and self.where_wrapped)


def mentions_of(statements: Iterable[ast.AST], words: RankWords) -> Mentions:
    """Read some statements."""
    mentioned: set[str] = set()
    names: set[str] = set()
    strings: set[str] = set()
    pending = list(statements)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(f".{node.attr}")
            if (written := dotted(node)) is not None:
                names.add(written)
        elif isinstance(node, ast.Constant):
            if node.value.__class__ is str and node.value.isidentifier():
                strings.add(node.value)
        elif isinstance(node, ast.arg):
            mentioned.add(node.arg)
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            mentioned.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            mentioned.update(alias.name.rpartition(".")[2] for alias in node.names)
        pending += children(node)
    if "getattr" in names:
        names |= {f".{string}" for string in strings}
    mentioned |= strings | {name.rpartition(".")[2] for name in names}
    return Mentions(
        not mentioned.isdisjoint(words.always),
        not mentioned.isdisjoint(words.where_wrapped),
        frozenset(names),
    )


def dotted(node: ast.expr) -> str | None:
    """``a.b.c`` for a chain of attributes on a name, subscripts (``Generic[T]``) left away; None for the rest."""
    parts: list[str] = []
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Name):
            return ".".join([node.id, *reversed(parts)])
        else:
            return None
