"""The edit of RS304: a check before the statement that divides."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.statements import enclosing_statement, insert_before
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.data.splits import split_at


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """Two new lines; None where the division is not in a simple statement of its own line."""
    for kind in (ast.BinOp, ast.AugAssign):
        for node in module.nodes(kind):
            split = split_at(module, node) if module.range_of(node) == finding.range else None
            if split is None:
                continue
            statement = enclosing_statement(module, node)
            if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)):
                return None
            batch, count = module.text_of(split.batch), module.text_of(split.count)
            edit = insert_before(module, statement, _check(batch, count))
            return None if edit is None else [edit]
    return None


def _check(batch: str, count: str) -> str:
    if any(character in batch + count for character in "\"'\\\n{}"):
        # No quotation marks inside an f-string before Python 3.12.
        message = '"the batch size must be divisible by the number of processes"'
    else:
        message = f'f"{{{batch}=}} must be divisible by {{{count}=}}"'
    return f"if {batch} % {count}:\n    raise ValueError({message})\n"
