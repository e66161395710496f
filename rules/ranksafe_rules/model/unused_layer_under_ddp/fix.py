"""The edit of RS531: the wrapper looks for unused parameters."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import add_argument
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules._shared.wrapped_models import DISTRIBUTED


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """``find_unused_parameters=True``; None when the code has changed."""
    for wrap in module.calls(DISTRIBUTED):
        if module.range_of(wrap) == finding.range:
            if any(keyword.arg == "find_unused_parameters" for keyword in wrap.keywords):
                return None
            return [add_argument(module, wrap, "find_unused_parameters=True")]
    return None
