"""The edit of RS536: the model's own clipping."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import replace
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.model.gradients_clipped_by_shard.shard_clips import shard_clip


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """``model.clip_grad_norm_(1.0)``; None when the code has changed."""
    for clip in module.calls_written("clip_grad_norm_"):
        if module.range_of(clip) == finding.range:
            found = shard_clip(module, clip)
            if found is None or found.replacement is None:
                return None
            return [replace(module, clip, found.replacement)]
    return None
