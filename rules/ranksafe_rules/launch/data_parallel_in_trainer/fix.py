"""Takes the wrapper away."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import replace
from ranksafe.fixes.statements import remove_statement
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """``nn.DataParallel(x)`` becomes ``x``; ``x = nn.DataParallel(x)`` goes, with an ``if`` that holds nothing else."""
    for node in module.nodes(ast.Call):
        if isinstance(node, ast.Call) and module.range_of(node) == finding.range and node.args:
            model = module.text_of(node.args[0])
            statement = module.parent(node)
            if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                return [replace(module, node, model)]
            if module.text_of(statement.targets[0]) != model:
                return [replace(module, node, model)]
            removed = remove_statement(module, _with_its_condition(module, statement))
            return None if removed is None else [removed]
    return None


def _with_its_condition(module: Module, statement: ast.stmt) -> ast.stmt:
    parent = module.parent(statement)
    alone = isinstance(parent, ast.If) and parent.body == [statement] and not parent.orelse
    return parent if isinstance(parent, ast.If) and alone else statement
