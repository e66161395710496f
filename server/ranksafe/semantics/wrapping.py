"""Whether a file names something that wraps models for several ranks, or that synchronises by itself."""

from __future__ import annotations

import re

_NAMES = (
    r"DistributedDataParallel|\bfsdp|\bDDP\b|FullyShardedDataParallel|\bFSDP\b|fully_shard|ccelerat|deepspeed"
    r"|\bFabric\b|torchmetrics|\bpytorch_lightning\b|\blightning\b|lightning_fabric|distributed\.checkpoint"
    r"|DTensor|distribute_tensor|Trainer\b"
)
_WRAPPERS = re.compile(_NAMES)
_LETTERS = _NAMES.replace(r"\b", "").replace("\\", "").split("|")
"""To look for them first takes a hundredth of the time where there are none."""


def may_wrap(text: str) -> bool:
    """Whether the text of a file has such a name."""
    return any(name in text for name in _LETTERS) and _WRAPPERS.search(text) is not None
