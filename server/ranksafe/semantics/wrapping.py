"""Whether a file names something that wraps models for several ranks, or that synchronises by itself."""

from __future__ import annotations

import re

_WRAPPERS = re.compile(
    r"DistributedDataParallel|\bfsdp|\bDDP\b|FullyShardedDataParallel|\bFSDP\b|fully_shard|ccelerat|deepspeed"
    r"|\bFabric\b|torchmetrics|\bpytorch_lightning\b|\blightning\b|lightning_fabric|distributed\.checkpoint"
    r"|DTensor|distribute_tensor|Trainer\b"
)


def may_wrap(text: str) -> bool:
    """Whether the text of a file has such a name."""
    return _WRAPPERS.search(text) is not None
