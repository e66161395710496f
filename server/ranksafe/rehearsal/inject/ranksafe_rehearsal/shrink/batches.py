"""Large batches become small ones, so that a script whose batches fill a GPU reaches its steps on a processor.

A DataLoader gets the small size as if the script had asked for it, and whoever reads ``batch_size`` of it reads that;
numbers that the script computes from its own size stay. What a batch divides by stays, too: by `UNIT` it leaves the
rest that it left.

Not covered: loops that draw their batches without a DataLoader, and batch samplers that are not torch's own.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

from .. import journal, provenance
from ..importing import after_import

UNIT = 8
"""A multiple of the usual numbers of devices and accumulated batches."""
KIND = "batch"


def install() -> None:
    """Hook torch's loaders once they are imported."""
    after_import("torch.utils.data.dataloader", _hook)


def small(size: int) -> int:
    """How many samples of a batch remain."""
    return size if size <= 2 * UNIT else UNIT + size % UNIT


def _hook(module: Any) -> None:
    loader: Any = module.DataLoader
    original = loader.__init__
    parameters = inspect.signature(original)

    @functools.wraps(original)
    def initialize(self: Any, *arguments: Any, **keywords: Any) -> None:
        try:
            bound = parameters.bind(self, *arguments, **keywords)
        except TypeError:  # the script's, and told by the original
            original(self, *arguments, **keywords)
            return
        is_cut = _cut(bound.arguments, module)
        original(*bound.args, **bound.kwargs)
        if is_cut:
            provenance.made(self, KIND)

    loader.__init__ = initialize


def _cut(given: dict[str, Any], module: Any) -> bool:
    """Whether the loader's arguments had a large batch; they have a small one now."""
    sampler = given.get("batch_sampler")
    if sampler is None:
        size: Any = given.get("batch_size")
        if not _is_large(size):
            return False
        given["batch_size"] = small(size)
    else:
        size = getattr(sampler, "batch_size", None)
        if type(sampler) is not module.BatchSampler or not _is_large(size):
            return False
        sampler.batch_size = small(size)
    _tell(size)
    return True


def _is_large(size: Any) -> bool:
    return type(size) is int and small(size) != size


def _tell(size: int) -> None:
    journal.modified(
        f"batches of {size} are cut to {small(size)}",
        f"大小为 {size} 的批次缩减为 {small(size)}",
        kind=KIND,
        what=f"{size}",
    )
