"""The edit of RS115: a port that is given from outside stays."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.statements import replace_statement
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.launch.fixed_rendezvous_port.ports import fixed_ports


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """``os.environ.setdefault("MASTER_PORT", ...)``; None when the assignment is gone."""
    for fixed in fixed_ports(module):
        if fixed.assignment is None or module.range_of(fixed.node) != finding.range:
            continue
        environment = module.text_of(fixed.node).partition("[")[0].rstrip()
        value = module.text_of(fixed.assignment.value)
        code = f'{environment}.setdefault("MASTER_PORT", {value})'
        edit = replace_statement(module, fixed.assignment, code)
        return None if edit is None else [edit]
    return None
