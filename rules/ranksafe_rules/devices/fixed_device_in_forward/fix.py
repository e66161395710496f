"""RS210: ask the input, or a parameter, for the device."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules._shared.devices import device_uses, own_device
from ranksafe_rules._shared.replicated_class import class_view


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """Replace the device expression."""
    for cls in module.nodes(ast.ClassDef):
        if not isinstance(cls, ast.ClassDef):
            continue
        view = class_view(module, cls)
        for method in view.in_forward:
            for use in device_uses(view, method):
                if module.range_of(use.device) == finding.range:
                    source = own_device(view, method, use)
                    return None if source is None else [Edit(finding.range, source)]
    return None
