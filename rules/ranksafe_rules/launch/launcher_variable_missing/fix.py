"""The edit of RS117: the value of a single process where the variable is not set."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import replace
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.launch.launcher_variable_missing.variables import reads_at_start


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """``os.environ.get("RANK", "0")``; None when the read is gone."""
    for read in reads_at_start(module):
        if module.range_of(read.node) != finding.range or read.fallback is None:
            continue
        if isinstance(read.node, ast.Subscript):
            environment = module.text_of(read.node.value)
            name = module.text_of(read.node.slice)
            return [replace(module, read.node, f'{environment}.get({name}, "{read.fallback}")')]
    return None
