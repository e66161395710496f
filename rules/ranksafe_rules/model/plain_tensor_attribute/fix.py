"""RS513: ``self.x = value`` becomes ``self.register_buffer("x", value, persistent=False)``."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.places import places_of
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """Put the call around the value, which stays as it is written."""
    attribute = finding.facts["attribute"]
    for kind in (ast.Assign, ast.AnnAssign):
        for statement in module.nodes(kind):
            if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
                continue
            if module.range_of(statement.value) != finding.range:
                continue
            places = places_of(module)
            start = places.span(module, statement)[0]
            value = places.with_parentheses(*places.span(module, statement.value))
            return [
                places.edit(start, value[0], f'self.register_buffer("{attribute}", '),
                places.edit(value[1], value[1], ", persistent=False)"),
            ]
    return None
