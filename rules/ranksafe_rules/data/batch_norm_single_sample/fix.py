"""The edit of RS302: a batch size that leaves no chunk of one sample."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.data.edits import batch_size_edit


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """A new batch size; None when it is no longer there."""
    return batch_size_edit(finding, module, finding.facts["larger"])
