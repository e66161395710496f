"""Takes the `.item()` away, or puts each replica's share of the count in its place."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import replace
from ranksafe.fixes.imports import import_name
from ranksafe.fixes.statements import remove_statement, replace_statement
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules._shared.count_scaling import scaling_code
from ranksafe_rules._shared.trainer_methods import COUNT
from ranksafe_rules.model.num_items_item_workaround.rule import assigned_back, counted_function


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:
    """The edits of ``offer``; None when the code has changed."""
    for node in module.nodes(ast.Call):
        if not isinstance(node, ast.Call) or module.range_of(node) != finding.range:
            continue
        function = counted_function(module, node)
        if function is None:
            continue
        assignment = assigned_back(module, node)
        if assignment is None:
            return [replace(module, node, COUNT)] if offer.key == "remove-item" else None
        statement = _with_its_condition(module, assignment)
        if offer.key == "remove-item":
            return _listed(remove_statement(module, statement))
        torch, imports = import_name(module, "torch")
        self_name = module.self_name(function) or "self"
        edit = replace_statement(module, statement, scaling_code(self_name, torch))
        return None if edit is None else [*imports, edit]
    return None


def _with_its_condition(module: Module, assignment: ast.Assign) -> ast.stmt:
    """The ``if num_items_in_batch is not None:`` around the assignment, where there is nothing else in it."""
    parent = module.parent(assignment)
    alone = isinstance(parent, ast.If) and parent.body == [assignment] and not parent.orelse
    return parent if isinstance(parent, ast.If) and alone else assignment


def _listed(edit: Edit | None) -> Sequence[Edit] | None:
    return None if edit is None else [edit]
