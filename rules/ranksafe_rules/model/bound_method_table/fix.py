"""RS510: names in the table, ``getattr`` at every call."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules._shared.replicated_class import class_view
from ranksafe_rules.model.bound_method_table.rewriting import rewritten


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """Replace the table's elements and its uses."""
    for cls in module.nodes(ast.ClassDef):
        if not isinstance(cls, ast.ClassDef):
            continue
        view = class_view(module, cls)
        for store in view.stores_of(str(finding.facts["attribute"])):
            if store.value is not None and module.range_of(store.value) == finding.range:
                changes = rewritten(view, store)
                if changes is None:
                    return None
                return [Edit(module.range_of(node), text) for node, text in changes]
    return None
