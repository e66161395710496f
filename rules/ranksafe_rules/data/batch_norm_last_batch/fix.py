"""The edit of RS303: ``drop_last=True``."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import add_argument, replace
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.data.edits import loader_at


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """A new argument, or a new value for the one that says False; None when the call is no longer there."""
    loader = loader_at(finding, module)
    if loader is None:
        return None
    for keyword in loader.keywords:
        if keyword.arg == "drop_last":
            return [replace(module, keyword.value, "True")]
    return [add_argument(module, loader, "drop_last=True")]
