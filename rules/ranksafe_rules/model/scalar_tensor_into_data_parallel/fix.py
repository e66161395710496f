"""Puts the Python number in the place of the tensor."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import replace
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.model.scalar_tensor_into_data_parallel.arguments import number_in


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """Replace ``torch.tensor(x)`` by ``x``; None when the code has changed."""
    for node in module.nodes(ast.Call):
        if isinstance(node, ast.Call) and module.range_of(node) == finding.range:
            number = number_in(module, node)
            if number is not None:
                return [replace(module, node, module.text_of(number))]
    return None
