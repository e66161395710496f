"""The edit of RS525: the model without its wrapper."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import replace
from ranksafe.fixes.statements import remove_statement
from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed
from ranksafe.source.position import Edit

from ranksafe_rules._shared.wrapped_models import DISTRIBUTED


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """``model`` for ``DistributedDataParallel(model)``; None when the code has changed."""
    for wrap in module.calls(DISTRIBUTED):
        if module.range_of(wrap) != finding.range:
            continue
        model = module.argument_node(wrap, "module", 0)
        statement = module.parent(wrap)
        if model is None or not isinstance(statement, ast.Assign):
            return None
        if unparsed(statement.targets[0]) == unparsed(model):
            edit = remove_statement(module, statement)
            return None if edit is None else [edit]
        return [replace(module, wrap, module.text_of(model))]
    return None
