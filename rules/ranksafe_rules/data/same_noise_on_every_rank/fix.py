"""The edit of RS317: accelerate adds the rank to the seed."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import add_argument
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

SET_SEED = "accelerate.utils.set_seed"


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """The argument; None when the code has changed."""
    for call in module.calls(SET_SEED):
        if module.range_of(call.func) == finding.range:
            return [add_argument(module, call, "device_specific=True")]
    return None
