"""Gives every replica its share of the count, so that all replicas run."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules._shared import trainer_methods as methods
from ranksafe_rules._shared.count_scaling import scale_count
from ranksafe_rules.model.batch_metric_in_compute_loss.comparison import comparisons


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """Insert the scaling at the start of the `compute_loss` of the finding; None when the code has changed."""
    for node in module.nodes(ast.FunctionDef):
        function = methods.override_of(module, node, "compute_loss")
        if function is not None and any(
            module.range_of(comparison) == finding.range
            for comparison in comparisons(module, function)
        ):
            return scale_count(module, function)
    return None
