"""RS514: reach the parameter by its name, which replicas have as an attribute."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules._shared.replicated_class import class_view
from ranksafe_rules.model.parameters_lookup_in_forward.replacement import replacement_for


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """Replace the lookup."""
    for cls in module.nodes(ast.ClassDef):
        if not isinstance(cls, ast.ClassDef):
            continue
        view = class_view(module, cls)
        for method in view.in_forward:
            for node in (
                *view.nodes(ast.Call, method),
                *view.nodes(ast.Subscript, method),
            ):
                if module.range_of(node) == finding.range:
                    found = replacement_for(view, method, node)
                    return None if found is None else [Edit(module.range_of(found[0]), found[1])]
    return None
