"""RS211: ask where the replica works at each use; the attribute stays for those who read it outside forward."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules._shared.devices import own_device
from ranksafe_rules._shared.replicated_class import class_view
from ranksafe_rules.devices.captured_device.rule import uses_in_forward


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """Replace each use of the attribute in forward."""
    attribute = str(finding.facts["attribute"])
    for cls in module.nodes(ast.ClassDef):
        if not isinstance(cls, ast.ClassDef):
            continue
        view = class_view(module, cls)
        stored = [store.value for store in view.stores_of(attribute) if store.value is not None]
        if not any(module.range_of(value) == finding.range for value in stored):
            continue
        found: list[Edit] = []
        for method, use in uses_in_forward(view, attribute):
            source = own_device(view, method, use)
            if source is None:
                return None
            found.append(Edit(module.range_of(use.device), source))
        return found
    return None
