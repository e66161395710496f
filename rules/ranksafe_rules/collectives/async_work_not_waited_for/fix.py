"""The edit of RS413: the call waits by itself."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import remove_keyword
from ranksafe.rank_flow import Kind
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.collectives.edits import issue_at


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """``async_op`` taken out; None when it is no longer there."""
    issue = issue_at(finding, module, Kind.NEVER_WAITED_FOR)
    if issue is None or not isinstance(issue.place.node, ast.Call):
        return None
    edit = remove_keyword(module, issue.place.node, "async_op")
    return None if edit is None else [edit]
