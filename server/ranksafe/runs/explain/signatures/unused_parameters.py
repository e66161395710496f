"""The parameters that a rank did not use, by name."""

from __future__ import annotations

import re

from ranksafe.localization import Translated

_NAMED = re.compile(
    r"Parameters which did not receive grad for rank (?P<rank>\d+): (?P<names>[^\n]+)"
)
_MOST_NAMES = 6
_UNUSED = Translated(
    "On rank {rank} {names} had no part in the loss of the step before, so DistributedDataParallel waits for gradients "
    "that never come. Remove or freeze what is unused; find_unused_parameters=True (accelerate: "
    "DistributedDataParallelKwargs) also works, but costs time and hides mistakes.",
    "在 rank {rank} 上，{names} 没有参与上一步的损失计算，DistributedDataParallel 会一直等待它们的梯度。"
    "请删除或冻结未使用的参数；find_unused_parameters=True（accelerate：DistributedDataParallelKwargs）也可行，"
    "但会变慢并掩盖错误。",
)
_MORE = Translated("{names} and {count} more parameters", "{names} 以及另外 {count} 个参数")


def explain_unused(text: str) -> Translated:
    """By name; of very many the first."""
    found = _NAMED.search(text)
    assert found is not None
    names = found["names"].split(", ")
    told: object = ", ".join(names[:_MOST_NAMES])
    if len(names) > _MOST_NAMES:
        told = _MORE.filled(names=told, count=len(names) - _MOST_NAMES)
    return _UNUSED.filled(rank=found["rank"], names=told)
