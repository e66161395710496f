"""What the program shows to be frozen before a wrapper looks at it: whatever is not was trained all along."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.rank_words import identifiers
from ranksafe_rules._shared.wrapped_models import Wrapped
from ranksafe_rules.model.model_changed_after_wrapping.changes import FLAG, settings_of_gradients

_OF_ALL: Final = frozenset({"module", "self", "parameters", "named_parameters", "modules", "data"})
"""Names that say nothing of what is meant."""


def may_be_frozen(module: Module, changed: ast.AST, wrapped: tuple[Wrapped, ...]) -> bool:
    """Whether the file, or a constructor in one that it imports, freezes what is unfrozen, the whole that it is a part
    of, or a part of it, as their names tell."""
    unfrozen = _names(_subject(module, changed))
    models = {name for item in wrapped for name in _names(item.model)[-1:]}
    for file in module.imported_saying(FLAG):
        for node in _frozen(file):
            if file is not module and not _is_in_constructor(file, node):
                continue  # Whoever calls that, and when, is not known.
            frozen = _names(node)
            if not models.union(unfrozen).isdisjoint(frozen[-1:]):
                return True
            if not set(frozen).isdisjoint(unfrozen[-1:]):
                return True
    return False


def _is_in_constructor(file: Module, node: ast.AST) -> bool:
    return getattr(file.enclosing_function(node), "name", "") == "__init__"


def _names(node: ast.AST | None) -> list[str]:
    """The names in ``net.module.head[0].parameters()``, from the whole to the part; none of other expressions."""
    found: list[str] = []
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(node, ast.Attribute):
            found.append(node.attr)
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Name):
        found.append(node.id)
    return [name for name in reversed(found) if name not in _OF_ALL]


def _subject(module: Module, changed: ast.AST) -> ast.AST:
    """``model.head.weight`` of ``model.head.weight.requires_grad = True``; of a loop over parameters its header."""
    if isinstance(changed, ast.Assign):
        changed = changed.targets[0]
    elif isinstance(changed, ast.Call):
        changed = changed.func
    subject = changed.value if isinstance(changed, ast.Attribute) else changed
    loop: ast.AST | None = subject
    while isinstance(subject, ast.Name) and loop is not None:
        loop = module.parent(loop)
        if isinstance(loop, ast.For) and subject.id in identifiers(loop.target):
            return loop.iter
    return subject


def _frozen(file: Module) -> Iterator[ast.AST]:
    for setting, value in settings_of_gradients(file):
        if not _is_true(value):
            yield _subject(file, setting)
    for node in file.nodes(ast.Assign):
        assert isinstance(node, ast.Assign)
        for keyword in node.value.keywords if isinstance(node.value, ast.Call) else ():
            if keyword.arg == FLAG and not _is_true(keyword.value):
                yield node.targets[0]


def _is_true(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is True
