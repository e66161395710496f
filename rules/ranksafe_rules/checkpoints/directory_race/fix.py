"""The edit of RS603: a directory that exists is no error."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import add_argument, replace
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.checkpoints.directories import creations


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """``exist_ok=True``, and os.makedirs for os.mkdir, which knows no such argument; None where the call is gone or
    its name is not written out."""
    for creation in creations(module):
        call = creation.call
        if module.range_of(call.func) != finding.range:
            continue
        given = module.argument_node(call, "exist_ok", 2)
        if given is not None:
            return [replace(module, given, "True")]
        added = add_argument(module, call, "exist_ok=True")
        if not creation.in_os:
            return [added]
        if not isinstance(call.func, ast.Attribute):
            return None
        return [replace(module, call.func, f"{module.text_of(call.func.value)}.makedirs"), added]
    return None
