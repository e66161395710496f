"""Adds the missing parameter."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import add_parameter
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """Append ``num_items_in_batch=None`` to the parameters; None when the code has changed."""
    for node in module.nodes(ast.FunctionDef):
        if isinstance(node, ast.FunctionDef) and module.range_of(node) == finding.range:
            return [add_parameter(module, node, "num_items_in_batch=None")]
    return None
