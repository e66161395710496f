"""Whether a function of a file, or what it refers to, can make ranks part: asked before anything is walked.

Said rather too often than not: whatever is named may be called.
"""

from __future__ import annotations

import ast

from ranksafe.semantics.imports import Imports
from ranksafe.semantics.mentions import Mentions, RankWords, mentions_of
from ranksafe.semantics.names import Names
from ranksafe.semantics.structure import ModuleStructure


class Concern:
    """Answers for one file."""

    def __init__(self, module: ModuleStructure, names: Names, imports: Imports) -> None:
        self._module = module
        self._names = names
        self._imports = imports

    def may_concern_ranks(self, node: ast.AST, words: RankWords, wrapping: bool) -> bool:
        """Whether a function, class or statement, or a definition that it refers to, mentions one of the words."""

        def look(node: ast.AST, _depth: int) -> list[ast.AST] | None:
            return self._referred(node, words, wrapping)

        query = f"concern {words.fingerprint} {wrapping}"
        pending = [node]
        seen = {id(node)}
        while pending:
            found: list[ast.AST] | None = self._module.memoized(query, pending.pop(), 0, look)
            if found is None:
                return True
            for item in found:
                if id(item) not in seen:
                    seen.add(id(item))
                    pending.append(item)
        return False

    def _referred(self, node: ast.AST, words: RankWords, wrapping: bool) -> list[ast.AST] | None:
        """The definitions and assignments of the file that a node refers to; None where it mentions one of the words
        itself, or refers to what does in another file."""
        module = self._module
        mentions = _mentions(module, node, words)
        if mentions.concern_ranks(wrapping):
            return None
        found: list[ast.AST] = list(module.body_of(node)) if isinstance(node, ast.ClassDef) else []
        cls = module.enclosing_class(node)
        for written in mentions.names:
            head, _, rest = written.partition(".")
            if not head:
                found += module.methods_named(rest)
                stores = [] if cls is None else module.attribute_stores(cls, rest)
                found += filter(None, map(module.parent, stores))
                continue
            for binding in module.module_bindings(head):
                if not isinstance(binding, ast.alias):
                    found.append(_statement(module, binding))
                elif self._concerns_elsewhere(binding, rest, words, wrapping):
                    return None
        return found

    def _concerns_elsewhere(
        self, alias: ast.alias, rest: str, words: RankWords, wrapping: bool
    ) -> bool:
        name = self._names.of_binding(alias)
        if name is None:
            return False
        if rest:
            name = self._imports.canonical(f"{name}.{rest}")
        if words.include(name.rpartition(".")[2], wrapping):
            return True
        project = self._imports.asked(name)
        return project is not None and project.may_concern_ranks(name, words)


def _mentions(module: ModuleStructure, node: ast.AST, words: RankWords) -> Mentions:
    if isinstance(node, ast.ClassDef):
        # What is in its body is looked at piece by piece, because the pieces are edited one by one.
        return mentions_of([*node.decorator_list, *node.bases, *node.keywords], words)
    module.note_unit_of(node)
    unit = module.unit_of(node)
    kept: dict[int, Mentions] = (
        {} if unit is None else unit.results.setdefault(f"mentions {words.fingerprint}", {})
    )
    if id(node) not in kept:
        kept[id(node)] = mentions_of([node], words)
    return kept[id(node)]


def _statement(module: ModuleStructure, binding: ast.AST) -> ast.AST:
    """A definition, or the statement that gives a name its value."""
    current = binding
    while not isinstance(current, ast.stmt):
        parent = module.parent(current)
        if parent is None:
            break
        current = parent
    return current
